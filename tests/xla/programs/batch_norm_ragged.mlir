module @batch_norm_ragged attributes {mhlo.num_partitions = 6 : i32} {
  func.func public @main(%0: tensor<1001x500xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) -> (tensor<1001x500xf32> {mhlo.sharding = "{devices=[2,3]<=[6]}"}) {
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %2 = "stablehlo.reduce"(%0, %1) ({
      ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1001x500xf32>, tensor<f32>) -> (tensor<500xf32>)
    %6 = "stablehlo.constant"() {value = dense<1001.0> : tensor<f32>} : () -> (tensor<f32>)
    %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<500xf32>)
    %8 = "stablehlo.divide"(%2, %7) : (tensor<500xf32>, tensor<500xf32>) -> (tensor<500xf32>)
    %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 1>} : (tensor<500xf32>) -> (tensor<1001x500xf32>)
    %10 = "stablehlo.subtract"(%0, %9) : (tensor<1001x500xf32>, tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    %11 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %12 = "stablehlo.reduce"(%0, %11) ({
      ^bb0(%13: tensor<f32>, %14: tensor<f32>):
      %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1001x500xf32>, tensor<f32>) -> (tensor<500xf32>)
    %16 = "stablehlo.reshape"(%12) : (tensor<500xf32>) -> (tensor<1x500xf32>)
    %17 = "stablehlo.constant"() {value = dense<1001.0> : tensor<f32>} : () -> (tensor<f32>)
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<1x500xf32>)
    %19 = "stablehlo.divide"(%16, %18) : (tensor<1x500xf32>, tensor<1x500xf32>) -> (tensor<1x500xf32>)
    %20 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x500xf32>) -> (tensor<1001x500xf32>)
    %21 = "stablehlo.subtract"(%0, %20) : (tensor<1001x500xf32>, tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    %22 = "stablehlo.multiply"(%21, %21) : (tensor<1001x500xf32>, tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    %23 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %24 = "stablehlo.reduce"(%22, %23) ({
      ^bb0(%25: tensor<f32>, %26: tensor<f32>):
      %27 = "stablehlo.add"(%25, %26) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%27) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<1001x500xf32>, tensor<f32>) -> (tensor<500xf32>)
    %28 = "stablehlo.constant"() {value = dense<1001.0> : tensor<f32>} : () -> (tensor<f32>)
    %29 = "stablehlo.broadcast_in_dim"(%28) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<500xf32>)
    %30 = "stablehlo.divide"(%24, %29) : (tensor<500xf32>, tensor<500xf32>) -> (tensor<500xf32>)
    %31 = "stablehlo.constant"() {value = dense<9.999999747378752e-06> : tensor<f32>} : () -> (tensor<f32>)
    %32 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<500xf32>)
    %33 = "stablehlo.add"(%30, %32) : (tensor<500xf32>, tensor<500xf32>) -> (tensor<500xf32>)
    %34 = "stablehlo.sqrt"(%33) : (tensor<500xf32>) -> (tensor<500xf32>)
    %35 = "stablehlo.broadcast_in_dim"(%34) {broadcast_dimensions = array<i64: 1>} : (tensor<500xf32>) -> (tensor<1001x500xf32>)
    %36 = "stablehlo.divide"(%10, %35) : (tensor<1001x500xf32>, tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    %37 = "stablehlo.custom_call"(%36) {call_target_name = "Sharding", mhlo.sharding = "{devices=[2,3]<=[6]}"} : (tensor<1001x500xf32>) -> (tensor<1001x500xf32>)
    return %37 : tensor<1001x500xf32>
  }
}
