module @window_concatenate attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}, %1: tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<1024x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %2 = "stablehlo.concatenate"(%0, %1) {dimension = 0 : i64} : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<1024x512xf32>)
    %3 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x512xf32>)
    %5 = "stablehlo.multiply"(%2, %4) : (tensor<1024x512xf32>, tensor<1024x512xf32>) -> (tensor<1024x512xf32>)
    %6 = "stablehlo.custom_call"(%5) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<1024x512xf32>) -> (tensor<1024x512xf32>)
    return %6 : tensor<1024x512xf32>
  }
}
