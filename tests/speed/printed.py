"""What a program printed, for tests."""

from nbhelpers.measurement import Attachment


class Printed(Attachment):
    """Standard output and errors of the last run."""

    def printed(self, output: str, errors: str) -> None:
        self.output, self.errors = output, errors
