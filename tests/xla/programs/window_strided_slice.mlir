module @window_strided_slice attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<512x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1023, 512>, strides = array<i64: 2, 1>} : (tensor<1024x512xf32>) -> (tensor<512x512xf32>)
    %2 = "stablehlo.constant"() {value = dense<2.0> : tensor<f32>} : () -> (tensor<f32>)
    %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x512xf32>)
    %4 = "stablehlo.multiply"(%1, %3) : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x512xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<512x512xf32>) -> (tensor<512x512xf32>)
    return %5 : tensor<512x512xf32>
  }
}
