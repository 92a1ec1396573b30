"""Print the doctor's report: `python -m nbhelpers.machine.doctor`."""

from . import doctor

if __name__ == "__main__":
    print(doctor().text())
