module @cache_update attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<8x16x128x64xf32> {mhlo.sharding = "{devices=[2,4,1,1]<=[8]}"}, %1: tensor<8x16x1x64xf32> {mhlo.sharding = "{devices=[2,4,1,1]<=[8]}"}, %2: tensor<i32> {mhlo.sharding = "{replicated}"}) -> (tensor<8x16x128x64xf32> {mhlo.sharding = "{devices=[2,4,1,1]<=[8]}"}) {
    %3 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %4 = "stablehlo.multiply"(%2, %3) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
    %5 = "stablehlo.dynamic_update_slice"(%0, %1, %4, %4, %2, %4) : (tensor<8x16x128x64xf32>, tensor<8x16x1x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<8x16x128x64xf32>)
    %6 = "stablehlo.custom_call"(%5) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4,1,1]<=[8]}"} : (tensor<8x16x128x64xf32>) -> (tensor<8x16x128x64xf32>)
    return %6 : tensor<8x16x128x64xf32>
  }
}
