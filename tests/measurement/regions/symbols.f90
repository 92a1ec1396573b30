program symbols
  use iso_c_binding, only: c_int64_t, c_int
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
  integer(c_int64_t) :: begin_ns, end_ns
  call work_ms(20)
  call noisebook_begin()
  begin_ns = now_ns()
  call work_ms(10)
  end_ns = now_ns()
  call noisebook_end()
  call work_ms(5)
  call tell_truth(begin_ns, end_ns)
end program
