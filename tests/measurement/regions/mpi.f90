program ranks
  use iso_c_binding, only: c_int64_t, c_int
  use mpi
  implicit none
  interface
    function now_ns() bind(c)
      import :: c_int64_t
      integer(c_int64_t) :: now_ns
    end function
    subroutine work_ms(milliseconds) bind(c)
      import :: c_int
      integer(c_int), value :: milliseconds
    end subroutine
    subroutine tell_truth(begin_ns, end_ns) bind(c)
      import :: c_int64_t
      integer(c_int64_t), value :: begin_ns, end_ns
    end subroutine
  end interface
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
