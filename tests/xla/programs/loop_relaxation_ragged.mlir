module @loop_relaxation_ragged attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<1001x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) -> (tensor<1001x256xf32> {mhlo.sharding = "{devices=[8,1]<=[8]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %2:2 = "stablehlo.while"(%1, %0) ({
      ^bb0(%3: tensor<i32>, %4: tensor<1001x256xf32>):
      %5 = "stablehlo.constant"() {value = dense<10> : tensor<i32>} : () -> (tensor<i32>)
      %6 = "stablehlo.compare"(%3, %5) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
      ^bb0(%7: tensor<i32>, %8: tensor<1001x256xf32>):
      %9 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> (tensor<i32>)
      %10 = "stablehlo.add"(%7, %9) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
      %11 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
      %12 = "stablehlo.pad"(%8, %11) {edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>} : (tensor<1001x256xf32>, tensor<f32>) -> (tensor<1003x256xf32>)
      %13 = "stablehlo.constant"() {value = dense<0.5> : tensor<f32>} : () -> (tensor<f32>)
      %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x256xf32>)
      %15 = "stablehlo.multiply"(%14, %8) : (tensor<1001x256xf32>, tensor<1001x256xf32>) -> (tensor<1001x256xf32>)
      %16 = "stablehlo.slice"(%12) {start_indices = array<i64: 2, 0>, limit_indices = array<i64: 1003, 256>, strides = array<i64: 1, 1>} : (tensor<1003x256xf32>) -> (tensor<1001x256xf32>)
      %17 = "stablehlo.slice"(%12) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1001, 256>, strides = array<i64: 1, 1>} : (tensor<1003x256xf32>) -> (tensor<1001x256xf32>)
      %18 = "stablehlo.add"(%16, %17) : (tensor<1001x256xf32>, tensor<1001x256xf32>) -> (tensor<1001x256xf32>)
      %19 = "stablehlo.constant"() {value = dense<0.25> : tensor<f32>} : () -> (tensor<f32>)
      %20 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1001x256xf32>)
      %21 = "stablehlo.multiply"(%20, %18) : (tensor<1001x256xf32>, tensor<1001x256xf32>) -> (tensor<1001x256xf32>)
      %22 = "stablehlo.add"(%15, %21) : (tensor<1001x256xf32>, tensor<1001x256xf32>) -> (tensor<1001x256xf32>)
      "stablehlo.return"(%10, %22) : (tensor<i32>, tensor<1001x256xf32>) -> ()
    }) : (tensor<i32>, tensor<1001x256xf32>) -> (tensor<i32>, tensor<1001x256xf32>)
    %23 = "stablehlo.custom_call"(%2#1) {call_target_name = "Sharding", mhlo.sharding = "{devices=[8,1]<=[8]}"} : (tensor<1001x256xf32>) -> (tensor<1001x256xf32>)
    return %23 : tensor<1001x256xf32>
  }
}
