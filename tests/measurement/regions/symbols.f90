program symbols
  use iso_c_binding, only: c_int64_t, c_int
  implicit none
  include 'truth.inc'
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
