module @window_pad attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<1024x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.pad"(%0, %1) {edge_padding_low = array<i64: 2, 0>, edge_padding_high = array<i64: 2, 0>, interior_padding = array<i64: 0, 0>} : (tensor<1024x512xf32>, tensor<f32>) -> (tensor<1028x512xf32>)
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1024, 512>, strides = array<i64: 1, 1>} : (tensor<1028x512xf32>) -> (tensor<1024x512xf32>)
    %4 = "stablehlo.add"(%3, %0) : (tensor<1024x512xf32>, tensor<1024x512xf32>) -> (tensor<1024x512xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<1024x512xf32>) -> (tensor<1024x512xf32>)
    return %5 : tensor<1024x512xf32>
  }
}
