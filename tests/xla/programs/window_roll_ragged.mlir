module @window_roll_ragged attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1001x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<1001x512xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %1 = "stablehlo.slice"(%0) {start_indices = array<i64: 1000, 0>, limit_indices = array<i64: 1001, 512>, strides = array<i64: 1, 1>} : (tensor<1001x512xf32>) -> (tensor<1x512xf32>)
    %2 = "stablehlo.slice"(%0) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1000, 512>, strides = array<i64: 1, 1>} : (tensor<1001x512xf32>) -> (tensor<1000x512xf32>)
    %3 = "stablehlo.concatenate"(%1, %2) {dimension = 0 : i64} : (tensor<1x512xf32>, tensor<1000x512xf32>) -> (tensor<1001x512xf32>)
    %4 = "stablehlo.add"(%3, %0) : (tensor<1001x512xf32>, tensor<1001x512xf32>) -> (tensor<1001x512xf32>)
    %5 = "stablehlo.custom_call"(%4) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<1001x512xf32>) -> (tensor<1001x512xf32>)
    return %5 : tensor<1001x512xf32>
  }
}
