module @rotate_halves attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<512x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 512>, limit_indices = array<i64: 512, 1024>, strides = array<i64: 1, 1>} : (tensor<512x1024xf32>) -> (tensor<512x512xf32>)
    %2 = "stablehlo.negate"(%1) : (tensor<512x512xf32>) -> (tensor<512x512xf32>)
    %3 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 512, 512>, strides = array<i64: 1, 1>} : (tensor<512x1024xf32>) -> (tensor<512x512xf32>)
    %4 = "stablehlo.concatenate"(%2, %3) {dimension = 1 : i64} : (tensor<512x512xf32>, tensor<512x512xf32>) -> (tensor<512x1024xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<512x1024xf32>) -> (tensor<512x1024xf32>)
    return %5 : tensor<512x1024xf32>
  }
}
