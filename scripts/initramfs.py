# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Makes the initramfs of a guest: two uncompressed cpio archives one after the other, which the kernel takes as one.

The first holds busybox, the RDMA tools with their libraries and providers, and the kernel's own modules; it is the same
for every run of a kernel and is kept in the cache. The second holds what one run adds: its modules, files and command.
No root is needed: the archive is written here, byte for byte, and owner 0 is only a number in it. Nothing is compressed,
since unpacking in an emulated CPU costs more than copying.
"""

import hashlib
import os
import py_compile
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

# Programs of the guest beside busybox, and what they open at run time without naming it to the linker.
PROGRAMS = ['ibv_devices', 'ibv_devinfo', 'ibv_rc_pingpong', 'rping', 'rdma', 'ip']
DLOPENED = ['/usr/lib/*/libibverbs/librxe-rdmav*.so', '/usr/lib/*/libibverbs/libsiw-rdmav*.so', '/lib/*/libgcc_s.so.1',
            '/etc/libibverbs.d/rxe.driver', '/etc/libibverbs.d/siw.driver']

# NICs that QEMU has, by the kernel's driver, in order of preference: the cloud flavour knows only virtio.
NICS = {'e1000': 'e1000', 'virtio_net': 'virtio-net-pci,host_mtu=9000'}

# Modules loaded at boot, in this order, each after what it depends on; then those that only lie there for modprobe.
# crc32_generic is what rxe asks the crypto layer for, and in no list of dependencies; later kernels do not have it.
LOADED = ['virtio_pci', 'virtio_console', *NICS, 'crc32_generic', 'ib_core', 'ib_uverbs', 'ib_cm', 'iw_cm', 'rdma_cm',
          'rdma_ucm', 'rdma_rxe']
PRESENT = ['siw', 'crc32c_generic', 'veth', 'loop', 'ext2', 'ext4', 'kunit', 'configfs', 'ib_umad', 'nvmet-rdma', 'nvme-rdma']
OPTIONAL = {'crc32_generic', *NICS, *PRESENT}
PORTS = {'virtio_pci', 'virtio_console'}    # a guest that is no machine has none

PYTHON_ZIP = '/lab/python.zip'


class Problem(Exception):
    """What went wrong, with what to do next: shown to the user without a trace."""


class Archive:
    """A cpio archive ("newc") being written; folders are made as they are needed."""

    def __init__(self, out):
        self.out = out
        self.inode = 0
        self.folders = set()

    def _entry(self, name, mode, size=0, device=(0, 0)):
        self.inode += 1
        raw = name.encode() + b'\0'
        numbers = (self.inode, mode, 0, 0, 1, 0, size, 0, 0, *device, len(raw), 0)
        self.out.write(b'070701' + b''.join(b'%08X' % n for n in numbers) + raw)
        self._pad(110 + len(raw))

    def _pad(self, length):
        self.out.write(b'\0' * (-length % 4))

    def folder(self, name):
        name = name.strip('/')
        if not name or name in self.folders:
            return
        self.folder(os.path.dirname(name))
        self.folders.add(name)
        self._entry(name, stat.S_IFDIR | 0o755)

    def data(self, name, content, mode=0o644):
        content = content.encode() if isinstance(content, str) else content
        self.folder(os.path.dirname(name))
        self._entry(name.strip('/'), stat.S_IFREG | mode, len(content))
        self.out.write(content)
        self._pad(len(content))

    def file(self, name, path):
        size = os.stat(path).st_size
        if size >= 1 << 32:
            raise Problem(f'{path} is too large for an initramfs (4 GiB)')
        self.folder(os.path.dirname(name))
        self._entry(name.strip('/'), stat.S_IFREG | (0o755 if os.access(path, os.X_OK) else 0o644), size)
        with open(path, 'rb') as source:
            shutil.copyfileobj(source, self.out, 1 << 20)
        self._pad(size)

    def link(self, name, target):
        self.folder(os.path.dirname(name))
        self._entry(name.strip('/'), stat.S_IFLNK | 0o777, len(target))
        self.out.write(target.encode())
        self._pad(len(target))

    def node(self, name, major, minor):
        self.folder(os.path.dirname(name))
        self._entry(name.strip('/'), stat.S_IFCHR | 0o600, 0, (major, minor))

    def end(self):
        self._entry('TRAILER!!!', 0)
        self.out.write(b'\0' * (-self.out.tell() % 512))


def is_elf(path):
    with open(path, 'rb') as f:
        return f.read(4) == b'\x7fELF'


def libraries(path):
    """The shared libraries of an ELF file, as absolute paths; none for a static one."""
    done = subprocess.run(['ldd', path], capture_output=True, text=True, check=False)
    lost = re.findall(r'(\S+) => not found', done.stdout)
    if lost:
        raise Problem(f'{path} needs {", ".join(lost)}, which this machine does not have\nnext: install it, or link it statically')
    return re.findall(r'(?:=> )?(/\S+) \(0x', done.stdout)


# What ibmr imports, and what those import late.
IMPORTS = ('argparse errno json os pathlib re sys time gettext locale shutil traceback linecache tokenize encodings.ascii '
           'encodings.latin_1 encodings.utf_8 zipimport site').split()


def ibmr(script, folder):
    """Entries for ibmr: itself, this machine's python3, and what they need of its library, compiled, in one archive."""
    code = f'import {", ".join(IMPORTS)}; print(*(m.__file__ for m in sys.modules.values() if getattr(m, "__file__", 0)), sep="\\n")'
    done = subprocess.run([sys.executable, '-I', '-c', code], capture_output=True, text=True, check=True)
    target, source = folder / 'python.zip', Path(sysconfig.get_path('stdlib'))
    with zipfile.ZipFile(target, 'w') as archive:       # stored: it unpacks without zlib
        for path in sorted(set(map(Path, done.stdout.split()))):
            if path.suffix == '.py' and source in path.parents and 'packages' not in str(path):
                compiled = py_compile.compile(str(path), cfile=str(folder / 'module.pyc'), doraise=True)
                archive.write(compiled, path.relative_to(source).with_suffix('.pyc'))
    python = [('/usr/bin/python3', sys.executable), *((lib, lib) for lib in libraries(sys.executable))]
    return [('/usr/sbin/ibmr', script), (PYTHON_ZIP, str(target)), *python]


def modprobe_order(kernel, name):
    """The kernel's own modules to load for NAME, itself last; [] when built in; None when there is no such module."""
    done = subprocess.run(['modprobe', '-d', kernel['MODROOT'], '-S', kernel['RELEASE'], '--show-depends', name],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return [Path(line.split()[1]) for line in done.stdout.splitlines() if line.startswith('insmod')]


def hard_dependencies(kernel, path):
    """PATH and the modules whose symbols it needs, at any distance. What modprobe loads beyond these is wished for, not needed:
    a faster checksum, for example, which only some CPUs have."""
    folder = Path(kernel['MODROOT'], 'lib/modules', kernel['RELEASE'])
    wanted = f'{path.relative_to(folder)}:'
    with open(folder / 'modules.dep', encoding='utf-8') as f:
        for line in f:
            if line.startswith(wanted):
                return {path, *(folder / name for name in line.split()[1:])}
    return {path}


def nic(kernel):
    """QEMU's name for a NIC that the kernel has a driver of."""
    for driver, device in NICS.items():
        if modprobe_order(kernel, driver) is not None:
            return device
    raise Problem(f'kernel {kernel["NAME"]} has no driver for a NIC of QEMU\'s: {", ".join(NICS)}\nnext: use another kernel')


def modules(kernel):
    """(paths to load at boot in order, all paths that go along)"""
    load, along = [], []
    for name in LOADED + PRESENT:
        order = modprobe_order(kernel, name)
        if order is None and name not in OPTIONAL | (PORTS if kernel['KIND'] == 'um' else set()):
            raise Problem(f'kernel {kernel["NAME"]} has no module {name}\nnext: rebuild it (scripts/kernel get {kernel["NAME"]})')
        for path in order or []:
            if path not in along:
                along.append(path)
            if name in LOADED and path not in load:
                load.append(path)
    return load, along


def module_info(path, field):
    return subprocess.run(['modinfo', '-F', field, path], capture_output=True, text=True, check=False).stdout.strip()


def inside(kernel, path):
    """Where a module of the kernel lies in the guest."""
    return '/' + str(path.relative_to(kernel['MODROOT']))


def base_content(kernel, init):
    """What goes into the first archive: {place in the guest: path here}, and the modules to load."""
    files = {'/init': init, '/usr/bin/busybox': shutil.which('busybox')}
    wanted = [(name, shutil.which(name)) for name in PROGRAMS]
    lost = [name for name, path in [('busybox', files['/usr/bin/busybox']), *wanted] if not path]
    if lost:
        raise Problem(f'programs missing: {", ".join(lost)}\nnext: scripts/setup')
    if libraries(files['/usr/bin/busybox']):
        raise Problem('busybox is not the static one\nnext: scripts/setup (package busybox-static)')
    for name, path in wanted:
        files['/usr/bin/' + name] = path
    for pattern in DLOPENED:
        for path in Path('/').glob(pattern[1:]):
            files[str(path)] = str(path)
    for path in list(files.values()):
        if is_elf(path):
            files.update({lib: lib for lib in libraries(path)})
    load, along = modules(kernel)
    for path in along:
        files[inside(kernel, path)] = str(path)
    return files, [inside(kernel, p) for p in load], along


def module_index(kernel, along):
    """modules.dep and modules.alias for what is there, so that the guest's modprobe works."""
    folder = Path(kernel['MODROOT'], 'lib/modules', kernel['RELEASE'])
    here = {str(p.relative_to(folder)) for p in along}
    names = {p.name.split('.')[0].replace('-', '_') for p in along}
    with open(folder / 'modules.dep', encoding='utf-8') as f:
        dep = [line for line in f if line.split(':')[0] in here]
    with open(folder / 'modules.alias', encoding='utf-8') as f:
        alias = [line for line in f if line.split()[-1] in names]
    return {'modules.dep': ''.join(dep), 'modules.alias': ''.join(alias),
            'modules.builtin': (folder / 'modules.builtin').read_bytes()}


def base(kernel, cache, init):
    """The path of the first archive, made unless it is in the cache."""
    files, load, along = base_content(kernel, init)
    key = hashlib.sha256(Path(__file__).read_bytes())
    for place, path in sorted(files.items()):
        info = os.stat(path)
        key.update(f'{place} {path} {info.st_size} {info.st_mtime_ns}\n'.encode())
    folder = Path(cache, 'initramfs')
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f'{kernel["NAME"]}+{key.hexdigest()[:16]}.cpio'
    if target.exists():
        os.utime(target)
        return target
    part = folder / f'{target.name}.{os.getpid()}'
    with open(part, 'wb') as out:
        archive = Archive(out)
        for name in ('proc', 'sys', 'dev', 'tmp', 'run', 'root', 'results', 'mnt', 'sbin', 'usr/sbin'):
            archive.folder(name)
        archive.node('/dev/console', 5, 1)
        archive.node('/dev/null', 1, 3)
        archive.link('/bin', 'usr/bin')
        for place, path in files.items():
            # one place for libraries, so that the loader finds all of them whatever links the host has
            archive.file(place, path)
        listing = subprocess.run(['busybox', '--list'], capture_output=True, text=True, check=True).stdout.split()
        for applet in listing:
            if '/usr/bin/' + applet not in files:
                archive.link('/usr/bin/' + applet, 'busybox')
        archive.link('/sbin/modprobe', '/usr/bin/busybox')
        archive.data('/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\n')
        archive.data('/etc/group', 'root:x:0:\n')
        archive.data('/etc/hosts', '127.0.0.1 localhost\n')
        for name, text in module_index(kernel, along).items():
            archive.data(f'/lib/modules/{kernel["RELEASE"]}/{name}', text)
        archive.data('/lab/load', ''.join(f'{p}\n' for p in load))
        archive.end()
    for old in folder.glob(f'{kernel["NAME"]}+*.cpio'):     # that of another clone may be in use
        if time.time() - old.stat().st_mtime > 7 * 86400:
            old.unlink(missing_ok=True)
    part.rename(target)
    return target


def extra(out, first, entries):
    """Writes FIRST's content and then the second archive, of ENTRIES (place, path or bytes), to the file OUT."""
    with open(first, 'rb') as source:
        shutil.copyfileobj(source, out, 1 << 20)
    archive = Archive(out)
    for place, content in entries:
        if isinstance(content, bytes):
            archive.data(place, content)
        else:
            archive.file(place, content)
    archive.end()
