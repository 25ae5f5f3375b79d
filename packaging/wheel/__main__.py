"""`python -m libgpumem`: the command, also where the folder of scripts is not in PATH."""
import os
import sys
import sysconfig


def main():
    """Becomes the gpumem that was installed with this package; returns only if there is none."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    # `pip install --target DIR` puts the scripts into DIR/bin, beside this package.
    folders.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in folders:
        program = os.path.join(folder, "gpumem")
        if os.access(program, os.X_OK):
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit("libgpumem: the command gpumem was not installed with this package")


if __name__ == "__main__":
    main()
