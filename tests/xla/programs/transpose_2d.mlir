module @transpose_2d attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %2 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x1024xf32>)
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    return %5 : tensor<1024x1024xf32>
  }
}
