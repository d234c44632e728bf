module @attention_ragged_heads attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%0: tensor<4x6x256x64xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %1: tensor<4x6x256x64xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}, %2: tensor<4x6x256x64xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) -> (tensor<4x6x256x64xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %3 = "stablehlo.dot_general"(%0, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>} : (tensor<4x6x256x64xf32>, tensor<4x6x256x64xf32>) -> (tensor<4x6x256x256xf32>)
    %4 = "stablehlo.constant"() {value = dense<0.125> : tensor<f32>} : () -> (tensor<f32>)
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x6x256x256xf32>)
    %6 = "stablehlo.multiply"(%3, %5) : (tensor<4x6x256x256xf32>, tensor<4x6x256x256xf32>) -> (tensor<4x6x256x256xf32>)
    %7 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> (tensor<f32>)
    %8 = "stablehlo.reduce"(%6, %7) ({
      ^bb0(%9: tensor<f32>, %10: tensor<f32>):
      %11 = "stablehlo.maximum"(%9, %10) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<4x6x256x256xf32>, tensor<f32>) -> (tensor<4x6x256xf32>)
    %12 = "stablehlo.reshape"(%8) : (tensor<4x6x256xf32>) -> (tensor<4x6x256x1xf32>)
    %13 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x6x256x1xf32>) -> (tensor<4x6x256x256xf32>)
    %14 = "stablehlo.subtract"(%6, %13) : (tensor<4x6x256x256xf32>, tensor<4x6x256x256xf32>) -> (tensor<4x6x256x256xf32>)
    %15 = "stablehlo.exponential"(%14) : (tensor<4x6x256x256xf32>) -> (tensor<4x6x256x256xf32>)
    %16 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %17 = "stablehlo.reduce"(%15, %16) ({
      ^bb0(%18: tensor<f32>, %19: tensor<f32>):
      %20 = "stablehlo.add"(%18, %19) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%20) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<4x6x256x256xf32>, tensor<f32>) -> (tensor<4x6x256xf32>)
    %21 = "stablehlo.reshape"(%17) : (tensor<4x6x256xf32>) -> (tensor<4x6x256x1xf32>)
    %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x6x256x1xf32>) -> (tensor<4x6x256x256xf32>)
    %23 = "stablehlo.divide"(%15, %22) : (tensor<4x6x256x256xf32>, tensor<4x6x256x256xf32>) -> (tensor<4x6x256x256xf32>)
    %24 = "stablehlo.dot_general"(%23, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>} : (tensor<4x6x256x256xf32>, tensor<4x6x256x64xf32>) -> (tensor<4x6x256x64xf32>)
    %25 = "stablehlo.custom_call"(%24) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"} : (tensor<4x6x256x64xf32>) -> (tensor<4x6x256x64xf32>)
    return %25 : tensor<4x6x256x64xf32>
  }
}
