program lines
  use iso_c_binding, only: c_int64_t, c_int
  implicit none
  include 'truth.inc'
  integer(c_int64_t) :: begin_ns, end_ns
  call work_ms(10)
  begin_ns = now_ns()
  print '(a)', 'Starting the solver'
  print '(a)', 'a line right behind it'
  call work_ms(10)
  end_ns = now_ns()
  print '(a,f8.3,a)', 'Solver took ', real(end_ns - begin_ns) * 1e-9, ' s'
  call work_ms(5)
  call tell_truth(begin_ns, end_ns)
end program
