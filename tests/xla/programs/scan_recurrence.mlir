module @scan_recurrence attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<16x64x256xf32> {mhlo.sharding = "{devices=[1,2,1,4]<=[8] last_tile_dim_replicate}"}, %1: tensor<64x512xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, %2: tensor<256x512xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}, %3: tensor<512x512xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> (tensor<64x512xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}, tensor<16x64x512xf32> {mhlo.sharding = "{devices=[1,2,4]<=[8]}"}) {
    %4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<16x64x512xf32>)
    %6 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %7:6 = "stablehlo.while"(%6, %1, %5, %0, %2, %3) ({
      ^bb0(%8: tensor<i32>, %9: tensor<64x512xf32>, %10: tensor<16x64x512xf32>, %11: tensor<16x64x256xf32>, %12: tensor<256x512xf32>, %13: tensor<512x512xf32>):
      %14 = "stablehlo.constant"() {value = dense<16> : tensor<i32>} : () -> (tensor<i32>)
      %15 = "stablehlo.compare"(%8, %14) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%15) : (tensor<i1>) -> ()
    }, {
      ^bb0(%16: tensor<i32>, %17: tensor<64x512xf32>, %18: tensor<16x64x512xf32>, %19: tensor<16x64x256xf32>, %20: tensor<256x512xf32>, %21: tensor<512x512xf32>):
      %22 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %23 = "stablehlo.add"(%16, %22) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      %24 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
      %25 = "stablehlo.dynamic_slice"(%19, %16, %24, %24) {slice_sizes = array<i64: 1, 64, 256>} : (tensor<16x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<1x64x256xf32>)
      %26 = "stablehlo.reshape"(%25) : (tensor<1x64x256xf32>) -> (tensor<64x256xf32>)
      %27 = "stablehlo.dot_general"(%26, %20) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x256xf32>, tensor<256x512xf32>) -> (tensor<64x512xf32>)
      %28 = "stablehlo.dot_general"(%17, %21) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<64x512xf32>, tensor<512x512xf32>) -> (tensor<64x512xf32>)
      %29 = "stablehlo.add"(%27, %28) : (tensor<64x512xf32>, tensor<64x512xf32>) -> (tensor<64x512xf32>)
      %30 = "stablehlo.tanh"(%29) : (tensor<64x512xf32>) -> (tensor<64x512xf32>)
      %31 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
      %32 = "stablehlo.reshape"(%30) : (tensor<64x512xf32>) -> (tensor<1x64x512xf32>)
      %33 = "stablehlo.dynamic_update_slice"(%18, %32, %16, %31, %31) : (tensor<16x64x512xf32>, tensor<1x64x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<16x64x512xf32>)
      "stablehlo.return"(%23, %30, %33, %19, %20, %21) : (tensor<i32>, tensor<64x512xf32>, tensor<16x64x512xf32>, tensor<16x64x256xf32>, tensor<256x512xf32>, tensor<512x512xf32>) -> ()
    }) : (tensor<i32>, tensor<64x512xf32>, tensor<16x64x512xf32>, tensor<16x64x256xf32>, tensor<256x512xf32>, tensor<512x512xf32>) -> (tensor<i32>, tensor<64x512xf32>, tensor<16x64x512xf32>, tensor<16x64x256xf32>, tensor<256x512xf32>, tensor<512x512xf32>)
    %34 = "stablehlo.custom_call"(%7#1) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<64x512xf32>) -> (tensor<64x512xf32>)
    %35 = "stablehlo.custom_call"(%7#2) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,2,4]<=[8]}"} : (tensor<16x64x512xf32>) -> (tensor<16x64x512xf32>)
    return %34, %35 : tensor<64x512xf32>, tensor<16x64x512xf32>
  }
}
