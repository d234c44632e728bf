module @experts attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<8x256x128xf32> {mhlo.sharding = "{devices=[8,1,1]<=[8]}"}, %1: tensor<8x256x8x64xf32> {mhlo.sharding = "{devices=[8,1,1,1]<=[8]}"}, %2: tensor<8x128x512xf32> {mhlo.sharding = "{devices=[8,1,1]<=[8]}"}, %3: tensor<8x512x128xf32> {mhlo.sharding = "{devices=[8,1,1]<=[8]}"}) -> (tensor<8x256x128xf32> {mhlo.sharding = "{devices=[8,1,1]<=[8]}"}) {
    %4 = "stablehlo.dot_general"(%1, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>} : (tensor<8x256x8x64xf32>, tensor<8x256x128xf32>) -> (tensor<8x8x64x128xf32>)
    %5 = "stablehlo.transpose"(%4) {permutation = array<i64: 1, 0, 2, 3>} : (tensor<8x8x64x128xf32>) -> (tensor<8x8x64x128xf32>)
    %6 = "stablehlo.custom_call"(%5) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1,1,1]<=[8]}"} : (tensor<8x8x64x128xf32>) -> (tensor<8x8x64x128xf32>)
    %7 = "stablehlo.dot_general"(%6, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [1]>} : (tensor<8x8x64x128xf32>, tensor<8x128x512xf32>) -> (tensor<8x8x64x512xf32>)
    %8 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<8x8x64x512xf32>)
    %10 = "stablehlo.maximum"(%7, %9) : (tensor<8x8x64x512xf32>, tensor<8x8x64x512xf32>) -> (tensor<8x8x64x512xf32>)
    %11 = "stablehlo.dot_general"(%10, %3) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [1]>} : (tensor<8x8x64x512xf32>, tensor<8x512x128xf32>) -> (tensor<8x8x64x128xf32>)
    %12 = "stablehlo.transpose"(%11) {permutation = array<i64: 1, 0, 2, 3>} : (tensor<8x8x64x128xf32>) -> (tensor<8x8x64x128xf32>)
    %13 = "stablehlo.custom_call"(%12) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1,1,1]<=[8]}"} : (tensor<8x8x64x128xf32>) -> (tensor<8x8x64x128xf32>)
    %14 = "stablehlo.dot_general"(%1, %13) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 2]>} : (tensor<8x256x8x64xf32>, tensor<8x8x64x128xf32>) -> (tensor<8x256x128xf32>)
    %15 = "stablehlo.custom_call"(%14) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1,1]<=[8]}"} : (tensor<8x256x128xf32>) -> (tensor<8x256x128xf32>)
    return %15 : tensor<8x256x128xf32>
  }
}
