// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "terminal.h"

#include "base/err.h"

/* required by curses.h for wide characters */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#define ESC_DELAY_MS 25 /* delay after which Esc counts as a key */

static SCREEN *screen;
static bool colors, utf8;

/* --- the guard --- */

static void restore(const struct termios *before)
{
	int err;

	/* the child was killed while curses had the terminal */
	tcsetattr(STDIN_FILENO, TCSADRAIN, before);
	if (setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return;
	fputs("\033[?1006l\033[?1000l", stdout); /* mouse */
	if (cursor_normal)
		putp(cursor_normal);
	if (exit_attribute_mode)
		putp(exit_attribute_mode);
	if (exit_ca_mode)
		putp(exit_ca_mode);
	fflush(stdout);
}

static void guard(pid_t child, const struct termios *before, const sigset_t *set)
{
	siginfo_t info;
	int status;

	for (;;) {
		int sig = sigwaitinfo(set, &info);

		if (sig != SIGCHLD) {
			/* the terminal also signals the child */
			if (sig > 0 && info.si_code <= 0)
				kill(child, sig);
			continue;
		}
		while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
			if (WIFSTOPPED(status)) {
				raise(SIGSTOP);
				kill(child, SIGCONT);
				continue;
			}
			if (WIFEXITED(status)) {
				struct termios now;

				/* the child may not have restored it, as when memory ran out */
				if (!tcgetattr(STDIN_FILENO, &now) &&
				    now.c_lflag != before->c_lflag)
					restore(before);
				_exit(WEXITSTATUS(status));
			}
			restore(before);
			log_error("top was killed by signal %d (%s)", WTERMSIG(status),
				  strsignal(WTERMSIG(status)));
			_exit(128 + WTERMSIG(status));
		}
	}
}

int terminal_guard(struct err *err)
{
	struct termios before;
	sigset_t set, old;
	pid_t parent = getpid(), pid;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return err_set(err, -ENOTTY,
			       "standard input and output must be a terminal; --once prints one "
			       "frame as text");
	sigemptyset(&set);
	for (size_t i = 0; i < 6; i++)
		sigaddset(&set, (int[]){ SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP }[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	pid = fork();
	if (pid < 0)
		return err_set(err, -errno, "cannot fork: %s", strerror(errno));
	if (pid)
		guard(pid, &before, &set);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return 0;
}

/* --- the screen --- */

static void add_colors(void)
{
	const char *no = getenv("NO_COLOR");

	colors = has_colors() && !(no && *no);
	if (!colors)
		return;
	start_color();
	use_default_colors();
	for (int i = 0; i < GRID_STYLES; i++)
		init_pair(i + 1, COLORS >= 256 ? grid_looks[i].color256 : grid_looks[i].color8, -1);
}

static int refuse_terminal(struct err *err)
{
	return err_set(
		err, -ENOTSUP,
		"unknown terminal type '%s': set TERM to one that is in terminfo, such as vt100",
		getenv("TERM") ?: "");
}

int terminal_check(struct err *err)
{
	bool moves;
	int found;

	if (!isatty(STDOUT_FILENO)) /* which terminal_guard() refuses */
		return 0;
	if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
		return refuse_terminal(err);
	moves = cursor_address != NULL;
	del_curterm(cur_term);
	if (!moves)
		return err_set(err, -ENOTSUP,
			       "a terminal of type '%s' cannot move its cursor: set TERM to one "
			       "that can, such as vt100; --once prints one frame as text",
			       getenv("TERM") ?: "");
	return 0;
}

int terminal_open(struct err *err)
{
	struct screen look;

	setlocale(LC_CTYPE, "");
	screen_of(stdout, &look);
	if (look.utf8 && strcmp(nl_langinfo(CODESET), "UTF-8"))
		setlocale(LC_CTYPE, "C.UTF-8");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	set_escdelay(ESC_DELAY_MS);
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return refuse_terminal(err);
	set_term(screen);
	add_colors();
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	mouseinterval(0);
	/* all, since curses would wait for a key after an event that is not asked for */
	mousemask(ALL_MOUSE_EVENTS, NULL);
	return 0;
}

void terminal_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

void terminal_size(int *width, int *height)
{
	struct winsize ws = {};

	*width = COLS;
	*height = LINES;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col || !ws.ws_row)
		return;
	*width = ws.ws_col;
	*height = ws.ws_row;
	if (*width != COLS || *height != LINES)
		resizeterm(*height, *width);
}

void terminal_show(const struct grid *g)
{
	for (int y = 0; y < g->height && y < LINES; y++) {
		move(y, 0);
		for (int x = 0; x < g->width && x < COLS; x++) {
			const struct grid_cell *c = &g->cell[(size_t)y * g->width + x];
			const char *sgr = grid_looks[c->style].sgr;
			attr_t attr = !*sgr	    ? A_NORMAL
				      : *sgr == '1' ? A_BOLD
				      : *sgr == '2' ? (colors ? A_NORMAL : A_DIM)
						    : A_REVERSE;

			attr_set(attr, colors ? c->style + 1 : 0, NULL);
			addstr(utf8 || *c->text >= 0 ? c->text : "?");
		}
	}
	attr_set(A_NORMAL, 0, NULL);
	refresh();
}

/* curses makes one event of what comes at once */
#define CLICKS (BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON1_TRIPLE_CLICKED)

static const int specials[] = { KEY_UP,	  KEY_DOWN, KEY_LEFT,  KEY_RIGHT, KEY_PPAGE,	KEY_NPAGE,
				KEY_HOME, KEY_END,  KEY_ENTER, 27,	  KEY_BACKSPACE };

enum terminal_event terminal_read(unsigned int *key, int *y, int *x)
{
	wint_t c;
	int kind = get_wch(&c);
	MEVENT m;

	if (kind == ERR)
		return TERMINAL_NONE;
	if (kind == KEY_CODE_YES && c == KEY_RESIZE)
		return TERMINAL_RESIZE;
	if (kind == KEY_CODE_YES && c == KEY_MOUSE) {
		/* of several events that have come meanwhile, the newest first */
		while (getmouse(&m) == OK)
			if (m.bstate & CLICKS) {
				*y = m.y;
				*x = m.x;
				return TERMINAL_CLICK;
			}
		return TERMINAL_RESIZE;
	}
	*key = c == '\r' ? '\n' : c;
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++)
		if ((kind == KEY_CODE_YES || c == 27) && (int)c == specials[i])
			*key = TERMINAL_KEYS + i;
	/* ignore unknown special keys */
	if (kind == KEY_CODE_YES && *key < TERMINAL_KEYS)
		return TERMINAL_RESIZE;
	return TERMINAL_KEY;
}
