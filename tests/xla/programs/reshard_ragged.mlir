module @reshard_ragged attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1001x500xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<1001x500xf32> {mhlo.sharding = "{devices=[1,8]<=[8]}"}) {
    %1 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x500xf32>)
    %3 = "stablehlo.multiply"(%0, %2) : (tensor<1001x500xf32>, tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    %4 = "stablehlo.custom_call"(%3) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,8]<=[8]}"} : (tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    return %4 : tensor<1001x500xf32>
  }
}
