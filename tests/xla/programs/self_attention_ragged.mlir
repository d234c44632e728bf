module @self_attention_ragged attributes {mhlo.num_partitions = 6 : i32} {
  func.func public @main(%0: tensor<3x128x256xf32> {mhlo.sharding = "{devices=[2,1,1,3]<=[6] last_tile_dim_replicate}"}, %1: tensor<256x8x32xf32> {mhlo.sharding = "{devices=[1,3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}, %2: tensor<256x8x32xf32> {mhlo.sharding = "{devices=[1,3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}, %3: tensor<256x8x32xf32> {mhlo.sharding = "{devices=[1,3,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}, %4: tensor<8x32x256xf32> {mhlo.sharding = "{devices=[3,1,1,2]<=[2,3]T(1,0) last_tile_dim_replicate}"}) -> (tensor<3x128x256xf32> {mhlo.sharding = "{devices=[2,1,1,3]<=[6] last_tile_dim_replicate}"}) {
    %5 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<3x128x256xf32>, tensor<256x8x32xf32>) -> (tensor<3x128x8x32xf32>)
    %6 = "stablehlo.dot_general"(%0, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<3x128x256xf32>, tensor<256x8x32xf32>) -> (tensor<3x128x8x32xf32>)
    %7 = "stablehlo.dot_general"(%0, %3) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>} : (tensor<3x128x256xf32>, tensor<256x8x32xf32>) -> (tensor<3x128x8x32xf32>)
    %8 = "stablehlo.dot_general"(%5, %6) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>} : (tensor<3x128x8x32xf32>, tensor<3x128x8x32xf32>) -> (tensor<3x8x128x128xf32>)
    %9 = "stablehlo.constant"() {value = dense<0.1767766922712326> : tensor<f32>} : () -> (tensor<f32>)
    %10 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<3x8x128x128xf32>)
    %11 = "stablehlo.multiply"(%8, %10) : (tensor<3x8x128x128xf32>, tensor<3x8x128x128xf32>) -> (tensor<3x8x128x128xf32>)
    %12 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> (tensor<f32>)
    %13 = "stablehlo.reduce"(%11, %12) ({
      ^bb0(%14: tensor<f32>, %15: tensor<f32>):
      %16 = "stablehlo.maximum"(%14, %15) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%16) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<3x8x128x128xf32>, tensor<f32>) -> (tensor<3x8x128xf32>)
    %17 = "stablehlo.reshape"(%13) : (tensor<3x8x128xf32>) -> (tensor<3x8x128x1xf32>)
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<3x8x128x1xf32>) -> (tensor<3x8x128x128xf32>)
    %19 = "stablehlo.subtract"(%11, %18) : (tensor<3x8x128x128xf32>, tensor<3x8x128x128xf32>) -> (tensor<3x8x128x128xf32>)
    %20 = "stablehlo.exponential"(%19) : (tensor<3x8x128x128xf32>) -> (tensor<3x8x128x128xf32>)
    %21 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %22 = "stablehlo.reduce"(%20, %21) ({
      ^bb0(%23: tensor<f32>, %24: tensor<f32>):
      %25 = "stablehlo.add"(%23, %24) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<3x8x128x128xf32>, tensor<f32>) -> (tensor<3x8x128xf32>)
    %26 = "stablehlo.reshape"(%22) : (tensor<3x8x128xf32>) -> (tensor<3x8x128x1xf32>)
    %27 = "stablehlo.broadcast_in_dim"(%26) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<3x8x128x1xf32>) -> (tensor<3x8x128x128xf32>)
    %28 = "stablehlo.divide"(%20, %27) : (tensor<3x8x128x128xf32>, tensor<3x8x128x128xf32>) -> (tensor<3x8x128x128xf32>)
    %29 = "stablehlo.dot_general"(%28, %7) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [1]>} : (tensor<3x8x128x128xf32>, tensor<3x128x8x32xf32>) -> (tensor<3x8x128x32xf32>)
    %30 = "stablehlo.transpose"(%29) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x8x128x32xf32>) -> (tensor<3x128x8x32xf32>)
    %31 = "stablehlo.dot_general"(%30, %4) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [0, 1]>} : (tensor<3x128x8x32xf32>, tensor<8x32x256xf32>) -> (tensor<3x128x256xf32>)
    %32 = "stablehlo.custom_call"(%31) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,1,1,3]<=[6] last_tile_dim_replicate}"} : (tensor<3x128x256xf32>) -> (tensor<3x128x256xf32>)
    return %32 : tensor<3x128x256xf32>
  }
}
