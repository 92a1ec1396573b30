"""Print the doctor's report: `python -m nbhelpers.machine.checks`."""

from . import doctor

if __name__ == "__main__":
    print(doctor().text())
