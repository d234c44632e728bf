module @scan_layers_model attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, %1: tensor<4x256x1024xf32> {mhlo.sharding = "{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %2: tensor<4x1024x256xf32> {mhlo.sharding = "{devices=[1,4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> (tensor<1024x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}) {
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %4:4 = "stablehlo.while"(%3, %0, %1, %2) ({
      ^bb0(%5: tensor<i32>, %6: tensor<1024x256xf32>, %7: tensor<4x256x1024xf32>, %8: tensor<4x1024x256xf32>):
      %9 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> (tensor<i32>)
      %10 = "stablehlo.compare"(%5, %9) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%10) : (tensor<i1>) -> ()
    }, {
      ^bb0(%11: tensor<i32>, %12: tensor<1024x256xf32>, %13: tensor<4x256x1024xf32>, %14: tensor<4x1024x256xf32>):
      %15 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %16 = "stablehlo.add"(%11, %15) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      %17 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
      %18 = "stablehlo.dynamic_slice"(%13, %11, %17, %17) {slice_sizes = array<i64: 1, 256, 1024>} : (tensor<4x256x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<1x256x1024xf32>)
      %19 = "stablehlo.reshape"(%18) : (tensor<1x256x1024xf32>) -> (tensor<256x1024xf32>)
      %20 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
      %21 = "stablehlo.dynamic_slice"(%14, %11, %20, %20) {slice_sizes = array<i64: 1, 1024, 256>} : (tensor<4x1024x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<1x1024x256xf32>)
      %22 = "stablehlo.reshape"(%21) : (tensor<1x1024x256xf32>) -> (tensor<1024x256xf32>)
      %23 = "stablehlo.dot_general"(%12, %19) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<1024x256xf32>, tensor<256x1024xf32>) -> (tensor<1024x1024xf32>)
      %24 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
      %25 = "stablehlo.broadcast_in_dim"(%24) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x1024xf32>)
      %26 = "stablehlo.maximum"(%23, %25) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
      %27 = "stablehlo.dot_general"(%26, %22) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<1024x1024xf32>, tensor<1024x256xf32>) -> (tensor<1024x256xf32>)
      %28 = "stablehlo.add"(%12, %27) : (tensor<1024x256xf32>, tensor<1024x256xf32>) -> (tensor<1024x256xf32>)
      "stablehlo.return"(%16, %28, %13, %14) : (tensor<i32>, tensor<1024x256xf32>, tensor<4x256x1024xf32>, tensor<4x1024x256xf32>) -> ()
    }) : (tensor<i32>, tensor<1024x256xf32>, tensor<4x256x1024xf32>, tensor<4x1024x256xf32>) -> (tensor<i32>, tensor<1024x256xf32>, tensor<4x256x1024xf32>, tensor<4x1024x256xf32>)
    %29 = "stablehlo.custom_call"(%4#1) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"} : (tensor<1024x256xf32>) -> (tensor<1024x256xf32>)
    return %29 : tensor<1024x256xf32>
  }
}
