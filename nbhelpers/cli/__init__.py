"""The command `noisebook`."""


def main() -> int:
    return 0
