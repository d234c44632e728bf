module @reshape_merge_major attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<32x64x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8]}"}) -> (tensor<2048x256xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %1 = "stablehlo.reshape"(%0) : (tensor<32x64x256xf32>) -> (tensor<2048x256xf32>)
    %2 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<2048x256xf32>)
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<2048x256xf32>, tensor<2048x256xf32>) -> (tensor<2048x256xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<2048x256xf32>) -> (tensor<2048x256xf32>)
    return %5 : tensor<2048x256xf32>
  }
}
