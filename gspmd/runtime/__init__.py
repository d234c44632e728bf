"""Running programs: transports between devices, the MPI job, its launcher and its environment."""
