module @train_cross_entropy attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%0: tensor<512x256xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}, %1: tensor<512xi32> {mhlo.sharding = "{devices=[2,4]<=[8] last_tile_dim_replicate}"}, %2: tensor<256x4000xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) -> (tensor<256x4000xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"}) {
    %3 = "stablehlo.dot_general"(%0, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<512x256xf32>, tensor<256x4000xf32>) -> (tensor<512x4000xf32>)
    %4 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> (tensor<f32>)
    %5 = "stablehlo.reduce"(%3, %4) ({
      ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.maximum"(%6, %7) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<512x4000xf32>, tensor<f32>) -> (tensor<512xf32>)
    %9 = "stablehlo.reshape"(%5) : (tensor<512xf32>) -> (tensor<512x1xf32>)
    %10 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<512x1xf32>) -> (tensor<512x4000xf32>)
    %11 = "stablehlo.subtract"(%3, %10) : (tensor<512x4000xf32>, tensor<512x4000xf32>) -> (tensor<512x4000xf32>)
    %12 = "stablehlo.reshape"(%1) : (tensor<512xi32>) -> (tensor<512x1xi32>)
    %13 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<512x1xi32>)
    %15 = "stablehlo.compare"(%12, %14) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<512x1xi32>, tensor<512x1xi32>) -> (tensor<512x1xi1>)
    %16 = "stablehlo.constant"() {value = dense<4000> : tensor<i32>} : () -> (tensor<i32>)
    %17 = "stablehlo.broadcast_in_dim"(%16) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<512x1xi32>)
    %18 = "stablehlo.add"(%12, %17) : (tensor<512x1xi32>, tensor<512x1xi32>) -> (tensor<512x1xi32>)
    %19 = "stablehlo.select"(%15, %18, %12) : (tensor<512x1xi1>, tensor<512x1xi32>, tensor<512x1xi32>) -> (tensor<512x1xi32>)
    %20 = "stablehlo.exponential"(%11) : (tensor<512x4000xf32>) -> (tensor<512x4000xf32>)
    %21 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %22 = "stablehlo.reduce"(%20, %21) ({
      ^bb0(%23: tensor<f32>, %24: tensor<f32>):
      %25 = "stablehlo.add"(%23, %24) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<512x4000xf32>, tensor<f32>) -> (tensor<512xf32>)
    %26 = "stablehlo.constant"() {value = dense<512.0> : tensor<f32>} : () -> (tensor<f32>)
    %27 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> (tensor<f32>)
    %28 = "stablehlo.divide"(%27, %26) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
    %29 = "stablehlo.broadcast_in_dim"(%28) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512xf32>)
    %30 = "stablehlo.negate"(%29) : (tensor<512xf32>) -> (tensor<512xf32>)
    %31 = "stablehlo.divide"(%29, %22) : (tensor<512xf32>, tensor<512xf32>) -> (tensor<512xf32>)
    %32 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64: 0>} : (tensor<512xf32>) -> (tensor<512x4000xf32>)
    %33 = "stablehlo.multiply"(%32, %20) : (tensor<512x4000xf32>, tensor<512x4000xf32>) -> (tensor<512x4000xf32>)
    %34 = "stablehlo.reshape"(%30) : (tensor<512xf32>) -> (tensor<512x1xf32>)
    %35 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> (tensor<i32>)
    %36 = "stablehlo.broadcast_in_dim"(%35) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<512x1xi32>)
    %37 = "stablehlo.constant"() {value = dense<3999> : tensor<i32>} : () -> (tensor<i32>)
    %38 = "stablehlo.broadcast_in_dim"(%37) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<512x1xi32>)
    %39 = "stablehlo.clamp"(%36, %19, %38) : (tensor<512x1xi32>, tensor<512x1xi32>, tensor<512x1xi32>) -> (tensor<512x1xi32>)
    %40 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> (tensor<f32>)
    %41 = "stablehlo.broadcast_in_dim"(%40) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<512x4000xf32>)
    %42 = "stablehlo.scatter"(%41, %39, %34) ({
      ^bb0(%43: tensor<f32>, %44: tensor<f32>):
      %45 = "stablehlo.add"(%43, %44) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
      "stablehlo.return"(%45) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>} : (tensor<512x4000xf32>, tensor<512x1xi32>, tensor<512x1xf32>) -> (tensor<512x4000xf32>)
    %46 = "stablehlo.add"(%33, %42) : (tensor<512x4000xf32>, tensor<512x4000xf32>) -> (tensor<512x4000xf32>)
    %47 = "stablehlo.dot_general"(%0, %46) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>} : (tensor<512x256xf32>, tensor<512x4000xf32>) -> (tensor<256x4000xf32>)
    %48 = "stablehlo.custom_call"(%47) {call_target_name = "Sharding", mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"} : (tensor<256x4000xf32>) -> (tensor<256x4000xf32>)
    return %48 : tensor<256x4000xf32>
  }
}
