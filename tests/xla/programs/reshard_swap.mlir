module @reshard_swap attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<1024x1024xf32> {mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"}) {
    %1 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x1024xf32>)
    %3 = "stablehlo.multiply"(%0, %2) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %4 = "stablehlo.custom_call"(%3) {call_target_name = "Sharding", mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"} : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    return %4 : tensor<1024x1024xf32>
  }
}
