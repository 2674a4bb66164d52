// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The user's terminal, which is a pseudo-terminal here: what is on it, what keys are, and how it is left. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/std.h"
#include "pseudo_terminal.h"
#include "top/terminal.h"

/* behind our headers, since it defines macros with short names */
#define NCURSES_WIDECHAR 1
#include <curses.h>

#define WIDTH	   20
#define HEIGHT	   4
#define TIMEOUT_MS 30000 /* of a busy machine */

const char *__lsan_default_suppressions(void);

/* curses keeps a screen that it could not open. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libncursesw\nleak:libtinfo";
}

const char *__asan_default_options(void);

/* Its functions have no frame pointers. */
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

static const struct winsize size = { .ws_row = HEIGHT, .ws_col = WIDTH };
static struct pseudo_terminal tty;
static struct termios before;
static int saved[2]; /* standard input and output of the test */
static char got[1 << 16];
static size_t n_got;
static struct err err;

static void use(int fd)
{
	fflush(stdout);
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
}

static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
	tty = pseudo_terminal_open(&size);
	tcgetattr(tty.theirs, &before);
	n_got = 0;
	err = (struct err){ "" };
	setenv("TERM", "xterm-256color", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("NO_COLOR");
	unsetenv("LINES");
	unsetenv("COLUMNS");
	use(tty.theirs);
	alarm(TIMEOUT_MS / 1000);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	alarm(0);
	terminal_close();
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	close(tty.ours);
	close(tty.theirs);
	setlocale(LC_CTYPE, "C");
	return 0;
}

static void open_terminal(void)
{
	if (terminal_open(&err))
		fail_msg("%s", err.text);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* Read what the program has written. Return: false: nothing in time, or its end is closed. */
static bool read_more(int ms)
{
	ssize_t n;

	if (!is_readable(tty.ours, ms) || n_got == sizeof(got) - 1)
		return false;
	n = read(tty.ours, got + n_got, sizeof(got) - 1 - n_got);
	n_got += n > 0 ? n : 0;
	got[n_got] = 0;
	return n > 0;
}

/* Wait until the terminal got this. */
static void gets(const char *text)
{
	got[n_got] = 0;
	while (!strstr(got, text))
		if (!read_more(TIMEOUT_MS))
			fail_msg("no '%s' in '%s'", text, got);
}

static void modes_are_restored(void)
{
	struct termios now;

	assert_int_equal(tcgetattr(tty.theirs, &now), 0);
	assert_int_equal(now.c_lflag, before.c_lflag);
	assert_int_equal(now.c_iflag, before.c_iflag);
	assert_int_equal(now.c_oflag, before.c_oflag);
}

/* --- which terminals --- */

static void refuses(int (*fn)(struct err *err), int code, const char *why)
{
	err = (struct err){ "" };
	assert_int_equal(fn(&err), code);
	assert_string_equal(err.text, why);
}

static void test_types(void **state)
{
	const int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(terminal_check(&err), 0);
	setenv("TERM", "vt100", 1);
	assert_int_equal(terminal_check(&err), 0);
	assert_string_equal(err.text, "");
	setenv("TERM", "dumb", 1);
	refuses(terminal_check, -ENOTSUP,
		"a terminal of type 'dumb' cannot move its cursor: set TERM to one that can, such "
		"as vt100; --once prints one frame as text");
	setenv("TERM", "no-such", 1);
	refuses(terminal_check, -ENOTSUP,
		"unknown terminal type 'no-such': set TERM to one that is in terminfo, such as "
		"vt100");
	refuses(terminal_open, -ENOTSUP,
		"unknown terminal type 'no-such': set TERM to one that is in terminfo, such as "
		"vt100");
	unsetenv("TERM");
	refuses(terminal_check, -ENOTSUP,
		"unknown terminal type '': set TERM to one that is in terminfo, such as vt100");
	/* nothing was opened: nothing is closed */
	terminal_close();
	modes_are_restored();
	/* what is not a terminal is refused later, for what it is */
	use(none);
	close(none);
	assert_int_equal(terminal_check(&err), 0);
}

/* Keys arrive one by one and are not echoed; Ctrl-C still interrupts. Afterwards all is as it was. */
static void test_modes(void **state)
{
	struct termios now;

	(void)state;
	open_terminal();
	assert_int_equal(tcgetattr(tty.theirs, &now), 0);
	assert_int_equal(now.c_lflag & (ICANON | ECHO | ISIG), ISIG);
	assert_true(is_nodelay(stdscr));
	assert_true(is_keypad(stdscr));
	assert_int_equal(curs_set(0), 0);
	assert_int_equal(mouseinterval(-1), 0);
	assert_in_range(get_escdelay(), 1, 100);
	refresh();
	gets("\033[?1049h"); /* the other screen, which has no lines of the shell */
	gets("\033[?25l");   /* no cursor */
	terminal_close();
	gets("\033[?1049l");
	gets("\033[?25h");
	modes_are_restored();
	terminal_close();
}

/* --- what is on the screen --- */

static struct grid g;

/* The character, the attributes and the pair of colours of a cell. */
static void cell_is(int y, int x, wchar_t c, attr_t attr, short pair)
{
	wchar_t text[CCHARW_MAX + 1] = { 0 };
	cchar_t cell;
	attr_t attrs;
	short colors;

	assert_int_equal(mvin_wch(y, x, &cell), OK);
	assert_int_equal(getcchar(&cell, text, &attrs, &colors, NULL), OK);
	assert_int_equal(text[0], c);
	assert_int_equal(attrs & (A_BOLD | A_DIM | A_REVERSE), attr);
	assert_int_equal(colors, pair);
}

/* A letter in each style, beside each other. */
static void show_styles(void)
{
	open_terminal();
	grid_open(&g, GRID_STYLES, 2);
	for (int i = 0; i < GRID_STYLES; i++)
		grid_put(&g, 1, i, i, (char[]){ 'a' + i, 0 });
	terminal_show(&g);
	grid_free(&g);
	gets("a");
}

static void test_styles(void **state)
{
	short front, back, pair;
	attr_t attr;

	(void)state;
	show_styles();
	cell_is(0, 0, ' ', A_NORMAL, 1);
	cell_is(1, GRID_PLAIN, 'a', A_NORMAL, 1);
	cell_is(1, GRID_STRONG, 'b', A_BOLD, 2);
	cell_is(1, GRID_DIM, 'c', A_NORMAL, 3); /* its colour is enough */
	cell_is(1, GRID_SELECTED, 'd', A_REVERSE, 4);
	cell_is(1, GRID_WARN, 'e', A_BOLD, 5);
	cell_is(1, GRID_CACHE, 'f', A_NORMAL, 6);
	cell_is(1, GRID_LESS, 'k', A_NORMAL, 11);
	/* what curses writes later has no style */
	assert_int_equal(attr_get(&attr, &pair, NULL), OK);
	assert_int_equal(attr, A_NORMAL);
	assert_int_equal(pair, 0);
	for (int i = 0; i < GRID_STYLES; i++) {
		assert_int_equal(pair_content(i + 1, &front, &back), OK);
		assert_int_equal(front, grid_looks[i].color256);
		assert_int_equal(back, -1);
	}
	gets("\033[38;5;68m");
}

static void test_few_colors(void **state)
{
	short front, back;

	(void)state;
	setenv("TERM", "linux", 1);
	show_styles();
	for (int i = 0; i < GRID_STYLES; i++) {
		assert_int_equal(pair_content(i + 1, &front, &back), OK);
		assert_int_equal(front, grid_looks[i].color8);
		assert_int_equal(back, -1);
	}
}

/* Without colours dim text is dim. */
static void test_no_colors(void **state)
{
	static const char *const names[] = { "TERM", "NO_COLOR" }, *const values[] = { "vt100",
										       "1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		setenv("TERM", "xterm-256color", 1);
		setenv(names[i], values[i], 1);
		show_styles();
		cell_is(1, GRID_STRONG, 'b', A_BOLD, 0);
		cell_is(1, GRID_DIM, 'c', A_DIM, 0);
		cell_is(1, GRID_SELECTED, 'd', A_REVERSE, 0);
		cell_is(1, GRID_CACHE, 'f', A_NORMAL, 0);
		terminal_close();
	}
	setenv("TERM", "xterm-256color", 1);
	setenv("NO_COLOR", "", 1);
	show_styles();
	cell_is(1, GRID_CACHE, 'f', A_NORMAL, 6);
}

/* What is larger than the screen is cut. */
static void test_cut(void **state)
{
	(void)state;
	open_terminal();
	grid_open(&g, WIDTH + 2, HEIGHT + 2);
	for (int y = 0; y < HEIGHT + 2; y++)
		for (int x = 0; x < WIDTH + 2; x++)
			grid_put(&g, y, x, GRID_PLAIN,
				 (char[]){ "abcdef"[y] - (x == WIDTH - 1) * 32, 0 });
	terminal_show(&g);
	grid_free(&g);
	for (int y = 0; y < HEIGHT; y++) {
		cell_is(y, 0, "abcd"[y], A_NORMAL, 1);
		cell_is(y, WIDTH - 2, "abcd"[y], A_NORMAL, 1);
		cell_is(y, WIDTH - 1, "ABCD"[y], A_NORMAL, 1);
	}
	gets("dddd");
}

static void show_words(void)
{
	open_terminal();
	grid_open(&g, 6, 1);
	grid_put(&g, 0, 0, GRID_PLAIN, "a漢ä\u0302z");
	terminal_show(&g);
	grid_free(&g);
}

static void test_unicode(void **state)
{
	/* a locale of UTF-8 that is not installed, and none at all, as in most containers */
	static const char *const locales[] = { "C.UTF-8", "xx_XX.UTF-8", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(locales); i++) {
		setenv("LC_ALL", locales[i], 1);
		setenv("LANG", locales[i], 1);
		unsetenv("LC_CTYPE");
		n_got = 0;
		show_words();
		assert_string_equal(nl_langinfo(CODESET), "UTF-8");
		cell_is(0, 0, 'a', A_NORMAL, 1);
		cell_is(0, 1, 0x6f22, A_NORMAL, 1);
		cell_is(0, 3, 0xe4, A_NORMAL, 1);
		cell_is(0, 4, 'z', A_NORMAL, 1);
		gets("a漢ä\u0302z");
		terminal_close();
	}
}

/* Other locales have no such characters. */
static void test_ascii(void **state)
{
	(void)state;
	setenv("LC_ALL", "C", 1);
	show_words();
	gets("a??z");
}

/* --- keys --- */

static enum terminal_event read_key(unsigned int *key)
{
	int y, x;

	*key = 0;
	return terminal_read(key, &y, &x);
}

static void type(const char *text)
{
	assert_int_equal(write(tty.ours, text, strlen(text)), strlen(text));
	assert_true(is_readable(tty.theirs, TIMEOUT_MS));
}

/* Typing @text is one key. */
static void key_is(const char *text, unsigned int want)
{
	unsigned int key;

	type(text);
	assert_int_equal(read_key(&key), TERMINAL_KEY);
	assert_int_equal(key, want);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
}

static void test_keys(void **state)
{
	static const char *const specials[] = { "\033OA",  "\033OB", "\033OD", "\033OC", "\033[5~",
						"\033[6~", "\033OH", "\033OF", "\033OM" };
	unsigned int key;

	(void)state;
	open_terminal();
	assert_int_equal(read_key(&key), TERMINAL_NONE);
	key_is("a", 'a');
	key_is("\r", '\n');
	key_is("\t", '\t');
	key_is("\025", 0x15);
	key_is("ä", 0xe4);
	key_is("漢", 0x6f22);
	key_is("\U0001f600", 0x1f600);
	/* up, down, left, right, page up, page down, home, end, enter */
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
		key_is(specials[i], TERMINAL_KEYS + i);
	key_is("\033", TERMINAL_KEYS + 9);
	key_is("\x7f", TERMINAL_KEYS + 10);
	/* letters with the numbers that curses gives to special keys */
	for (unsigned int c = KEY_DOWN; c <= KEY_RIGHT; c++)
		key_is((char[]){ 0xc0 | c >> 6, 0x80 | (c & 0x3f), 0 }, c);
	/* keys that have no meaning here: F1 */
	type("\033OP");
	assert_int_equal(read_key(&key), TERMINAL_RESIZE);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
	/* one at a time */
	type("xy");
	assert_int_equal(read_key(&key), TERMINAL_KEY);
	assert_int_equal(key, 'x');
	assert_int_equal(read_key(&key), TERMINAL_KEY);
	assert_int_equal(key, 'y');
}

/* Of the first button that it is pressed; nothing that a mouse does makes the program wait. */
static void test_mouse(void **state)
{
	/* the first one is released, the third one is pressed and released, the wheel turns in four directions, the mouse moves */
	static const char *const others[] = { "\033[<0;6;3m",  "\033[<2;6;3M",	"\033[<2;6;3m",
					      "\033[<64;6;3M", "\033[<65;6;3M", "\033[<66;6;3M",
					      "\033[<67;6;3M", "\033[<35;6;3M" };
	/* two clicks, and one that ends elsewhere, which came while the program was busy */
	static const char *const bursts[] = {
		"\033[<0;6;3M\033[<0;6;3m\033[<0;6;3M\033[<0;6;3m",
		"\033[<0;6;3M\033[<0;9;3m",
	};
	unsigned int key;
	int y = -1, x = -1;

	(void)state;
	open_terminal();
	type("\033[<0;6;3M"); /* column 6 of line 3, from 1 on */
	assert_int_equal(terminal_read(&key, &y, &x), TERMINAL_CLICK);
	assert_int_equal(y, 2);
	assert_int_equal(x, 5);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		type(others[i]);
		assert_int_equal(read_key(&key), TERMINAL_RESIZE);
		assert_int_equal(read_key(&key), TERMINAL_NONE);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bursts); i++) {
		type(bursts[i]);
		y = x = -1;
		assert_int_equal(terminal_read(&key, &y, &x), TERMINAL_CLICK);
		assert_int_equal(y, 2);
		assert_int_equal(x, 5);
		while (read_key(&key) != TERMINAL_NONE)
			;
	}
}

static void size_is(int width, int height)
{
	int w, h;

	terminal_size(&w, &h);
	assert_int_equal(w, width);
	assert_int_equal(h, height);
	assert_int_equal(COLS, width);
	assert_int_equal(LINES, height);
}

static void resize(int width, int height)
{
	const struct winsize to = { .ws_row = height, .ws_col = width };

	assert_int_equal(ioctl(tty.theirs, TIOCSWINSZ, &to), 0);
}

static void test_size(void **state)
{
	unsigned int key;

	(void)state;
	open_terminal();
	size_is(WIDTH, HEIGHT);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
	resize(30, HEIGHT);
	size_is(30, HEIGHT);
	assert_int_equal(read_key(&key), TERMINAL_RESIZE);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
	resize(30, 7);
	size_is(30, 7);
	assert_int_equal(read_key(&key), TERMINAL_RESIZE);
	/* a size that is unknown is as it was */
	resize(0, 9);
	size_is(30, 7);
	resize(40, 0);
	size_is(30, 7);
	assert_int_equal(read_key(&key), TERMINAL_NONE);
}

/* --- the guard --- */

static int said; /* what it writes to standard error */
static int ready[2];

static void send_byte(char c)
{
	if (write(ready[1], &c, 1) != 1)
		_exit(99);
}

static char listen_to_child(void)
{
	char c = 0;

	assert_true(is_readable(ready[0], TIMEOUT_MS));
	assert_int_equal(read(ready[0], &c, 1), 1);
	return c;
}

/*
 * Run @program in the guard's child. @take: with the terminal as the one that controls both, which resets it when they
 * exit. Return: the guard.
 */
static pid_t guarded(void (*program)(void), bool take)
{
	pid_t pid;

	said = memfd_create("stderr", MFD_CLOEXEC);
	assert_int_equal(pipe(ready), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		use(tty.theirs);
		if (take)
			pseudo_terminal_take(&tty);
		dup2(said, STDERR_FILENO);
		if (terminal_guard(&err))
			_exit(98);
		program();
		_exit(97);
	}
	return pid;
}

/* Return: how the guard has ended. */
static int ended(pid_t guard)
{
	int status;

	assert_int_equal(waitpid(guard, &status, 0), guard);
	close(ready[0]);
	close(ready[1]);
	return status;
}

static void exits(pid_t guard, int code, const char *message)
{
	const int status = ended(guard);
	char text[256] = "";

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
	assert_true(pread(said, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, message);
	close(said);
}

static void break_modes(void)
{
	struct termios t = before;

	cfmakeraw(&t);
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

static void exit_well(void)
{
	_exit(7);
}

static void exit_badly(void)
{
	break_modes();
	_exit(8);
}

static void die(void)
{
	break_modes();
	raise(SIGKILL);
}

/* It exits as the program does. If that has not restored the terminal, it does so. */
static void test_exit(void **state)
{
	(void)state;
	use(saved[0]);
	exits(guarded(exit_well, false), 7, "");
	assert_false(read_more(0));
	exits(guarded(exit_badly, false), 8, "");
	modes_are_restored();
	gets("\033[?1006l\033[?1000l"); /* the mouse */
	gets("\033[?25h");
	gets("\033[?1049l");
	gets("\033(B\033[m");
	n_got = 0;
	exits(guarded(die, false), 128 + SIGKILL,
	      "ibscope: error: top was killed by signal 9 (Killed)\n");
	modes_are_restored();
	gets("\033[?1006l\033[?1000l");
	gets("\033[?1049l");
	/* a type that nobody knows: only the modes */
	setenv("TERM", "no-such", 1);
	n_got = 0;
	exits(guarded(exit_badly, false), 8, "");
	modes_are_restored();
	assert_false(read_more(0));
}

static void stop(void)
{
	raise(SIGSTOP);
	_exit(5);
}

/* It stops with the program, and continues with it. */
static void test_stop(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	use(saved[0]);
	pid = guarded(stop, false);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	exits(pid, 5, "");
}

static void exit_with(int sig)
{
	_exit(sig);
}

static void await_signal(void)
{
	static const int all[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		signal(all[i], exit_with);
	send_byte('r');
	for (;;)
		pause();
}

static void test_signals(void **state)
{
	static const int passed[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };

	(void)state;
	use(saved[0]);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		const pid_t pid = guarded(await_signal, false);

		assert_int_equal(listen_to_child(), 'r');
		kill(pid, passed[i]);
		exits(pid, passed[i], "");
	}
}

static void count_interrupts(void)
{
	siginfo_t info;
	sigset_t set;
	int n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	send_byte('r');
	while (sigwaitinfo(&set, &info) == SIGINT) {
		n++;
		send_byte('i');
	}
	_exit(n);
}

/* The terminal itself interrupts both, so the guard does not pass that on. */
static void test_interrupt(void **state)
{
	pid_t pid;

	(void)state;
	use(saved[0]);
	pid = guarded(count_interrupts, true);
	assert_int_equal(listen_to_child(), 'r');
	assert_int_equal(write(tty.ours, "\003", 1), 1);
	assert_int_equal(listen_to_child(), 'i');
	/* both wait for signals in the order of their numbers: SIGTERM is the last */
	kill(pid, SIGTERM);
	exits(pid, 1, "");
}

static void tell_of_end(int sig)
{
	(void)sig;
	send_byte('t');
	_exit(0);
}

static void await_end(void)
{
	signal(SIGTERM, tell_of_end);
	send_byte('r');
	for (;;)
		pause();
}

/* Without the guard, nobody would restore the terminal: the program ends as well. */
static void test_orphan(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	use(saved[0]);
	pid = guarded(await_end, false);
	assert_int_equal(listen_to_child(), 'r');
	kill(pid, SIGKILL);
	assert_int_equal(listen_to_child(), 't');
	status = ended(pid);
	assert_true(WIFSIGNALED(status));
	close(said);
}

static void test_no_terminal(void **state)
{
	static const char why[] = "standard input and output must be a terminal; --once prints "
				  "one frame as text";
	const int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	fflush(stdout);
	dup2(none, STDOUT_FILENO);
	refuses(terminal_guard, -ENOTTY, why);
	dup2(tty.theirs, STDOUT_FILENO);
	dup2(none, STDIN_FILENO);
	refuses(terminal_guard, -ENOTTY, why);
	close(none);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_types),	     T(test_modes),   T(test_styles),	 T(test_few_colors),
		T(test_no_colors),   T(test_cut),     T(test_unicode),	 T(test_ascii),
		T(test_keys),	     T(test_mouse),   T(test_size),	 T(test_exit),
		T(test_stop),	     T(test_signals), T(test_interrupt), T(test_orphan),
		T(test_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
