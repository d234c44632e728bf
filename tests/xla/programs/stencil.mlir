// A 3-wide convolution over an image whose rows are split over all devices: halos from both neighbours.
module @stencil attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(
      %x: tensor<2x64x16x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"},
      %k: tensor<3x3x8x8xf32>) -> (tensor<2x64x16x8xf32> {mhlo.sharding = "{devices=[1,4,1,1]<=[4]}"}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<2x64x16x8xf32>, tensor<3x3x8x8xf32>) -> tensor<2x64x16x8xf32>
    return %0 : tensor<2x64x16x8xf32>
  }
}
