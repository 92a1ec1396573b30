program ranks
  use iso_c_binding, only: c_int64_t, c_int
  use mpi
  implicit none
  include 'truth.inc'
  integer :: error
  integer(c_int64_t) :: begin_ns, end_ns
  call work_ms(5)
  call MPI_Init(error)
  begin_ns = now_ns()
  call work_ms(10)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  end_ns = now_ns()
  call tell_truth(begin_ns, end_ns)
  call MPI_Finalize(error)
end program
