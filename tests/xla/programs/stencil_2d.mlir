module @stencil_2d attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> (tensor<1024x1024xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.pad"(%0, %1) {edge_padding_low = array<i64: 1, 1>, edge_padding_high = array<i64: 1, 1>, interior_padding = array<i64: 0, 0>} : (tensor<1024x1024xf32>, tensor<f32>) -> (tensor<1026x1026xf32>)
    %3 = "stablehlo.slice"(%2) {start_indices = array<i64: 2, 1>, limit_indices = array<i64: 1026, 1025>, strides = array<i64: 1, 1>} : (tensor<1026x1026xf32>) -> (tensor<1024x1024xf32>)
    %4 = "stablehlo.slice"(%2) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 1024, 1025>, strides = array<i64: 1, 1>} : (tensor<1026x1026xf32>) -> (tensor<1024x1024xf32>)
    %5 = "stablehlo.add"(%3, %4) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %6 = "stablehlo.slice"(%2) {start_indices = array<i64: 1, 2>, limit_indices = array<i64: 1025, 1026>, strides = array<i64: 1, 1>} : (tensor<1026x1026xf32>) -> (tensor<1024x1024xf32>)
    %7 = "stablehlo.add"(%5, %6) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %8 = "stablehlo.slice"(%2) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 1025, 1024>, strides = array<i64: 1, 1>} : (tensor<1026x1026xf32>) -> (tensor<1024x1024xf32>)
    %9 = "stablehlo.add"(%7, %8) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %10 = "stablehlo.constant"() {value = dense<4.0> : tensor<f32>} : () -> (tensor<f32>)
    %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1024x1024xf32>)
    %12 = "stablehlo.multiply"(%11, %0) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %13 = "stablehlo.subtract"(%9, %12) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    %14 = "stablehlo.custom_call"(%13) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,4]<=[8]}"} : (tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>)
    return %14 : tensor<1024x1024xf32>
  }
}
