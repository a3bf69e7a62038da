! SPDX-License-Identifier: Apache-2.0
! Fortran: arrays, complex functions that return by value, as reference LAPACK needs them
program matmul_probe
  implicit none
  integer :: i, j
  real(8) :: a(17, 9), b(9, 23), c(17, 23), s
  complex(4) :: z
  do j = 1, 9
    do i = 1, 17
      a(i, j) = i - 2 * j
    end do
    do i = 1, 23
      b(j, i) = i * j - 40
    end do
  end do
  c = matmul(a, b)
  do j = 1, 23
    do i = 1, 17
      s = dot_product(a(i, :), b(:, j))
      if (s /= c(i, j)) stop 1
    end do
  end do
  z = cube((1.0, 2.0))
  if (z /= (-11.0, -2.0)) stop 2
contains
  complex(4) function cube(x)
    complex(4), intent(in) :: x
    cube = x * x * x
  end function cube
end program matmul_probe
