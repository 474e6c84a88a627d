#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""ibmr against files that were captured in a guest (tests/ibmr/root), and against roots that are broken in each way a person
may meet. What is expected is computed here from those files by other means than ibmr's own. They come from scripts/demo2,
which also runs ibmr live, and fails when the kernel's tables have other columns than these.
"""

import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
IBMR = HERE.parent.parent / 'scripts/ibmr'
ROOT = HERE / 'root'
TABLES = ('regions', 'pools', 'windows', 'magazines')


def ibmr(*words, root=ROOT, **more):
    return subprocess.run([sys.executable, IBMR, *(['--root', root] if root else []), *map(str, words)], capture_output=True,
                          text=True, check=False, timeout=600, **more)


def load():
    """ibmr as a module"""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader('ibmr', str(IBMR))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('ibmr', loader))
    loader.exec_module(module)
    return module


def captured(what, device='rxe0'):
    """(column names, rows of words) of a captured file"""
    lines = (ROOT / device / what).read_text(encoding='ascii').splitlines()
    return lines[0].lstrip('# ').split(), [line.split() for line in lines[1:]]


class Show(unittest.TestCase):
    def test_plain(self):
        """One device: as the kernel prints it."""
        for what in (*TABLES, 'dma', 'stats'):
            done = ibmr(what, 'rxe0')
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            self.assertEqual(done.stdout, (ROOT / 'rxe0' / what).read_text(encoding='ascii'))

    def test_json(self):
        for what in TABLES:
            columns, rows = captured(what)
            self.assertTrue(rows, what)
            told = json.loads(ibmr(what, 'rxe0', '--json').stdout)['rxe0'][what]
            self.assertEqual(len(told), len(rows))
            for one, words in zip(told, rows):
                self.assertEqual(list(one), columns)
                for column, word in zip(columns, words):
                    if column == 'access':
                        self.assertEqual('|'.join(one[column]) or 'none', word)
                    else:
                        self.assertEqual(str(one[column]), word)
                        self.assertIs(type(one[column]), int if word.isdigit() else str, column)

    def test_json_lists(self):
        for what in ('dma', 'stats'):
            told = json.loads(ibmr('--root', ROOT, what, '--json', root=None).stdout)['rxe0'][what]
            self.assertEqual({k: str(v) for k, v in told.items()}, dict(captured(what)[1]))

    def test_keys_stay_words(self):
        told = json.loads(ibmr('regions', '--json').stdout)['rxe0']['regions']
        self.assertTrue(all(row['lkey'].startswith('0x') and len(row['lkey']) == 10 for row in told))

    def test_two_devices(self):
        """The device in front, one heading; and JSON has both."""
        with tempfile.TemporaryDirectory() as folder:
            for device in ('rxe0', 'rxe10'):
                shutil.copytree(ROOT / 'rxe0', Path(folder, device))
            lines = ibmr('regions', root=folder).stdout.splitlines()
            rows = captured('regions')[1]
            self.assertEqual(lines[0].split()[:3], ['#', 'device', 'lkey'])
            self.assertEqual([line.split()[0] for line in lines[1:]], ['rxe0'] * len(rows) + ['rxe10'] * len(rows))
            self.assertEqual([line.split()[1:] for line in lines[1:]], rows * 2)
            self.assertEqual(list(json.loads(ibmr('pools', '--json', root=folder).stdout)), ['rxe0', 'rxe10'])
            self.assertEqual(ibmr('regions', 'rxe10', root=folder).stdout, (ROOT / 'rxe0/regions').read_text())

    def test_watch(self):
        done = ibmr('stats', '--watch', '0.1', '--count', '3', '--json')
        self.assertEqual(len([json.loads(line) for line in done.stdout.splitlines()]), 3)

    def test_environment(self):
        done = ibmr('stats', root=None, env={**os.environ, 'IBMR_ROOT': str(ROOT)})
        self.assertEqual(done.stdout, (ROOT / 'rxe0/stats').read_text())

    def test_closed_pipe(self):
        with subprocess.Popen([sys.executable, IBMR, '--root', ROOT, 'stats', '--watch', '0.1', '--count', '20'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.stderr.read(), '')
            self.assertEqual(process.wait(), 0)


class Layout(unittest.TestCase):
    def test_devices_folder(self):
        """Devices in a folder of their own, beside ib_mr's files; a device may be called as one of them, or as the folder."""
        for names in (('rxe0',), ('devices', 'dma_reports')):
            with tempfile.TemporaryDirectory() as folder:
                for name in names:
                    shutil.copytree(ROOT / 'rxe0', Path(folder, 'devices', name))
                Path(folder, 'dma_reports').write_text('')
                self.assertEqual(list(json.loads(ibmr('pools', '--json', root=folder).stdout)), list(names))
                self.assertEqual(ibmr('regions', names[0], root=folder).stdout, (ROOT / 'rxe0/regions').read_text())

    def test_old_layout_with_that_name(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ('devices', 'rxe0'):
                shutil.copytree(ROOT / 'rxe0', Path(folder, name))
            self.assertEqual(list(json.loads(ibmr('pools', '--json', root=folder).stdout)), ['devices', 'rxe0'])


class Explain(unittest.TestCase):
    def ask(self, question, answer, *words):
        """The file as the kernel's: what is read follows what was written."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'rxe0')
            shutil.copytree(ROOT / 'rxe0', path)
            (path / 'explain').write_text(' ' * len(question) + answer + '\n')
            done = ibmr('explain', 'rxe0', *words, root=folder)
            self.assertEqual((path / 'explain').read_text()[:len(question)], question)
            return done

    def test_refused(self):
        text = 'refused: the access ends 7 bytes past the end of the region (12 bytes at 0x60003ffb were asked for)'
        done = self.ask('0xae45 0x60003ffb 12 read', text, '0xae45', '0x60003ffb', 12, 'READ')
        self.assertEqual((done.returncode, done.stdout), (1, text + '\n'))

    def test_allowed(self):
        done = self.ask('0xae45 0x60000000 4096 read,write local', 'allowed: 4096 bytes, from byte 0 of 16384 on',
                        '44613', '1610612736', '0x1000', 'read,write', '--local')
        self.assertEqual(done.returncode, 0)

    def test_stale(self):
        self.assertEqual(self.ask('0x1 0x2 3 atomic', 'stale: process a (7) unmapped or moved the memory', 1, 2, 3, 'atomic').returncode, 0)

    def test_no_verdict(self):
        self.assertEqual(self.ask('0x1 0x2 3 read', 'not ours to say: key 0x1 is', 1, 2, 3, 'read').returncode, 3)

    def test_json(self):
        done = self.ask('0xae45 0x60003ffb 12 read', 'refused: no', '0xae45', '0x60003ffb', 12, 'read', '--json')
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told['verdict'], told['key'], told['length_bytes'], told['text']),
                         (1, 'refused', '0x0000ae45', 12, 'refused: no'))

    def test_usage(self):
        for words in ((), ('rxe0',), ('rxe0', 'key', 0, 1, 'read'), ('rxe0', 1, 0, 1, 'reed'), ('rxe0', 1, 0, 1, 'read,'),
                      ('rxe0', 1 << 32, 0, 1, 'read'), ('rxe0', 1, -1, 1, 'read'), ('rxe0', 1, 0, 1 << 64, 'read'),
                      ('rxe0', 1, 0, 1, 'atomic', '--local'), ('rxe0', 1, 0, 1, 'read', 'more')):
            done = ibmr('explain', *words)
            self.assertEqual((done.returncode, done.stdout), (2, ''), words)
            self.assertTrue(done.stderr)


class Top(unittest.TestCase):
    def test_rates(self):
        """Counts that rose between two samples, per second; and the busiest magazine is the first line."""
        top = load()
        columns, rows = captured('magazines')
        takes, number = columns.index('takes'), columns.index('magazine')
        busy = rows[-1][number]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'rxe0')
            shutil.copytree(ROOT / 'rxe0', path)
            old = top.sample(Path(folder), None)
            rows[-1][takes] = str(int(rows[-1][takes]) + 1000)
            (path / 'magazines').write_text('\n'.join([f'# {" ".join(columns)}', *(' '.join(r) for r in rows)]) + '\n')
            with open(path / 'stats', 'a', encoding='ascii') as stats:
                stats.write('refused_MAX_MAPS 7\n')
            new = top.sample(Path(folder), 'rxe0')
        told = top.rated(old[0], new[0], 2.0)
        self.assertEqual({str(row['magazine']): row['takes/s'] for row in told},
                         {row[number]: 500.0 if row[number] == busy else 0.0 for row in rows})
        lines = top.screen(told, new[1], old[1], 2.0, 'takes/s')
        self.assertTrue(lines[0].endswith('refused: MAX_MAPS 3.5/s'), lines[0])
        self.assertEqual(lines[2].split()[1], busy)

    def test_screen(self):
        lines = ibmr('top', '--watch', '0.1', '--count', '1').stdout.splitlines()
        self.assertRegex(lines[0], r'^rxe0: \d+ regions, \d+ windows, \d+ pages pinned, \d+ went stale; refused: nothing$')
        self.assertEqual(lines[1].split()[:3], ['device', 'magazine', 'kind'])
        columns, rows = captured('magazines')
        self.assertEqual(len(lines), 2 + len(rows))
        pools = {row[0] for row in captured('pools')[1]}
        for line in lines[2:]:
            self.assertEqual(line.split()[2] == 'shared', line.split()[1] not in pools)
        lines = ibmr('top', '--watch', '0.1', '--count', '1', '--sort', 'in_use').stdout.splitlines()
        used = [int(line.split()[4]) for line in lines[2:]]
        self.assertEqual(used, sorted((int(row[columns.index('in_use')]) for row in rows), reverse=True))

    def test_usage(self):
        for words in (('--watch', '0'), ('--watch', 'x'), ('--count', '0'), ('--sort', 'colour')):
            self.assertEqual(ibmr('top', *words).returncode, 2)


class Nothing(unittest.TestCase):
    """Each message names the cause and what to do; the status is 3."""

    def expect(self, done, cause, step):
        self.assertEqual((done.returncode, done.stdout), (3, ''))
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertIn(cause, lines[0])
        self.assertTrue(lines[1].startswith('ibmr: next: ') and step in lines[1], lines[1])

    def test_not_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, 'other').mkdir()
            self.expect(ibmr('regions', root=f'{folder}/ib_mr'), 'not loaded', 'modprobe')

    def test_no_debugfs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.expect(ibmr('top', root=f'{folder}/ib_mr'), 'debugfs is not mounted', f'mount -t debugfs debugfs {folder}')

    def test_no_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            self.expect(ibmr('stats', root=folder), 'no RDMA device', 'rdma link add')

    def test_no_such_device(self):
        self.expect(ibmr('pools', 'mlx9'), 'no device mlx9', 'rxe0')
        self.expect(ibmr('explain', 'mlx9', 1, 2, 3, 'read'), 'no device mlx9', 'rxe0')

    def test_other_version(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, 'rxe0').mkdir()
            Path(folder, 'rxe0/regions').write_text('lkey 0x1 rkey 0x2\n')
            self.expect(ibmr('regions', '--json', root=folder), 'no heading', 'one version')

    def test_short_rows(self):
        """A line that is cut, or a table without a column that is needed: a sentence, not a traceback."""
        for what, commands in (('magazines', (('magazines', '--json'), ('top', '--watch', '0.1', '--count', '1'))),
                               ('pools', (('pools', '--json'), ('top', '--watch', '0.1', '--count', '1'))),
                               ('stats', (('stats', '--json'), ('top', '--watch', '0.1', '--count', '1')))):
            for command in commands:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, 'rxe0')
                    shutil.copytree(ROOT / 'rxe0', path)
                    lines = (path / what).read_text().splitlines()
                    lines[-1] = lines[-1].split()[0]
                    (path / what).write_text('\n'.join(lines) + '\n')
                    self.expect(ibmr(*command, root=folder), 'and a line with 1', 'one version')
                    (path / what).write_text('# colour\nred\n')
                    if command[0] in ('top', 'stats'):
                        self.expect(ibmr(*command, root=folder), 'has no column', 'one version')

    @unittest.skipUnless(os.path.exists('/dev/full'), 'needs /dev/full')
    def test_full_disk(self):
        for words in (('regions',), ('stats', '--json'), ('top', '--watch', '0.1', '--count', '1')):
            with open('/dev/full', 'w', encoding='ascii') as full:
                done = subprocess.run([sys.executable, IBMR, '--root', ROOT, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, 2), done.stderr)
            self.assertIn('cannot be written', done.stderr)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which('setpriv'), 'needs another user than root')
    def test_no_permission(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / 'rxe0', Path(folder, 'ib_mr/rxe0'))
            os.chmod(folder, 0o755)
            os.chmod(Path(folder, 'ib_mr'), 0)
            shutil.copy(IBMR, Path(folder, 'ibmr'))
            user = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups'] if os.geteuid() == 0 else []
            done = subprocess.run([*user, '/usr/bin/env', 'python3', f'{folder}/ibmr', '--root', f'{folder}/ib_mr', 'regions'],
                                  capture_output=True, text=True, check=False, cwd='/')
            os.chmod(Path(folder, 'ib_mr'), 0o755)
            self.expect(done, 'no permission', 'root')

    def test_usage(self):
        for words in ((), ('colours',), ('regions', '--watch', 'x'), ('regions', 'a', 'b')):
            self.assertEqual(ibmr(*words).returncode, 2)
        for words in (('--help',), ('regions', '--help'), ('explain', '-h')):
            done = ibmr(*words)
            self.assertEqual(done.returncode, 0)
            self.assertIn('exit status:', done.stdout)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash would offer for the last word."""
        script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ibmr; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(['bash', '-c', script, 'bash', IBMR.with_suffix('.bash'), *words], capture_output=True, text=True,
                              check=True, env={**os.environ, 'IBMR_ROOT': str(ROOT)})
        self.assertEqual(done.stderr, '')
        return done.stdout.split()

    def test_completion(self):
        self.assertEqual(self.complete('ibmr', 'ma'), ['magazines'])
        self.assertEqual(self.complete('ibmr', 'regions', ''), ['rxe0'])
        self.assertEqual(self.complete('ibmr', '--root', '/nowhere', 'regions', ''), [])
        self.assertIn('--local', self.complete('ibmr', 'explain', '--'))
        keys = {word for row in captured('regions')[1] for word in row[:2]} - {'0x00000000'}
        self.assertEqual(set(self.complete('ibmr', 'explain', 'rxe0', '')), keys)
        self.assertEqual(self.complete('ibmr', 'explain', 'rxe0', '1', '2', '3', 'at'), ['atomic'])
        self.assertIn('takes/s', self.complete('ibmr', 'top', '--sort', 'ta'))


class Manual(unittest.TestCase):
    def test_says_all(self):
        """The manual page has each command, option and exit status that --help has."""
        page = IBMR.with_suffix('.8').read_text().replace('\\-', '-')
        text = ''.join(ibmr(*words).stdout for words in (('--help',), ('top', '--help'), ('explain', '--help'), ('dma', '--help')))
        for word in set(re.findall('--[a-z]+', text)) - {'--help'}:
            self.assertIn(word, page)
        for command in (*TABLES, 'dma', 'stats', 'explain', 'top'):
            self.assertIn(f'.B {command}', page)


if __name__ == '__main__':
    unittest.main()
