"""Takes code and prototypes out of the README and out of manual pages."""

import glob
import os
import re

from abi import toolchain

README = os.path.join(toolchain.ROOT, "README.md")
MAN = os.path.join(toolchain.ROOT, "man")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def readme_block(language):
    """The README's one block of a language."""
    (only,) = re.findall(rf"^```{language}\n(.*?)^```$", read(README), re.DOTALL | re.MULTILINE)
    return only


def pages():
    """Every page's source, by name."""
    found = sorted(glob.glob(os.path.join(MAN, "*.[1-9]")))
    return {os.path.basename(path): read(path) for path in found}


def section(page, title):
    """The body of a page's section, or ''."""
    found = re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", page, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def literals(text):
    """The literal blocks of a part of a page, as the reader sees them."""
    blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", text, re.DOTALL | re.MULTILINE)
    return [block.replace("\\&", "").replace("\\e", "\\") for block in blocks]


def names(page):
    """The names that a page's NAME section gives it."""
    return re.findall(r"^\.Nm (\S+)", section(page, "NAME"), re.MULTILINE)


def prototypes(page):
    """{name: prototype} of the SYNOPSIS, in the header's spelling."""
    text = section(page, "SYNOPSIS")
    text = re.sub(r"^\.Bd -literal.*?^\.Ed$", "", text, flags=re.DOTALL | re.MULTILINE)
    found, result = {}, None
    arguments, name = [], None
    for line in text.splitlines():
        macro, _, rest = line.partition(" ")
        if macro == ".Ft":
            result = rest
        elif macro == ".Fn":
            words = re.findall(r'"([^"]*)"|(\S+)', rest)
            name, *arguments = [quoted or plain for quoted, plain in words]
            found[name] = (result, arguments)
        elif macro == ".Fo":
            name, arguments = rest.strip(), []
        elif macro == ".Fa":
            arguments.append(rest.strip('"'))
        elif macro == ".Fc":
            found[name] = (result, arguments)
    return {
        name: f"{result}{'' if result.endswith('*') else ' '}{name}({', '.join(arguments)})"
        for name, (result, arguments) in found.items()
    }
