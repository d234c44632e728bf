module @softmax_ragged attributes {mhlo.num_partitions = 6 : i32} {
  func.func public @main(%0: tensor<511x1000xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) -> (tensor<511x1000xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.reduce"(%0, %1) ({
      ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.maximum"(%3, %4) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<511x1000xf32>, tensor<f32>) -> (tensor<511xf32>)
    %6 = "stablehlo.reshape"(%2) : (tensor<511xf32>) -> (tensor<511x1xf32>)
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<511x1xf32>) -> (tensor<511x1000xf32>)
    %8 = "stablehlo.subtract"(%0, %7) : (tensor<511x1000xf32>, tensor<511x1000xf32>) -> (tensor<511x1000xf32>)
    %9 = "stablehlo.exponential"(%8) : (tensor<511x1000xf32>) -> (tensor<511x1000xf32>)
    %10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %11 = "stablehlo.reduce"(%9, %10) ({
      ^bb0(%12: tensor<f32>, %13: tensor<f32>):
      %14 = "stablehlo.add"(%12, %13) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%14) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<511x1000xf32>, tensor<f32>) -> (tensor<511xf32>)
    %15 = "stablehlo.reshape"(%11) : (tensor<511xf32>) -> (tensor<511x1xf32>)
    %16 = "stablehlo.broadcast_in_dim"(%15) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<511x1xf32>) -> (tensor<511x1000xf32>)
    %17 = "stablehlo.divide"(%9, %16) : (tensor<511x1000xf32>, tensor<511x1000xf32>) -> (tensor<511x1000xf32>)
    %18 = "stablehlo.custom_call"(%17) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,3]<=[6]}"} : (tensor<511x1000xf32>) -> (tensor<511x1000xf32>)
    return %18 : tensor<511x1000xf32>
  }
}
