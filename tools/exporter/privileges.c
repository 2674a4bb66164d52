// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int change_user(const char *user, struct err *err)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(user);
	if (!pw)
		return err_set(err, -EINVAL, "--user: there is no user '%.100s'", user);
	if (!pw->pw_uid)
		return err_set(err, -EINVAL, "--user: '%.100s' is root, who keeps privileges",
			       user);
	if (setgroups(0, NULL) || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid))
		return err_set(err, -errno, "cannot become user %s: %s", user, strerror(errno));
	return 0;
}

/* Needs CAP_SETPCAP, which is there only if there is something to lose. */
static void drop_bounding(void)
{
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int privileges_drop(const char *user, struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {}, now[2];
	int ret;

	drop_bounding();
	ret = geteuid() ? 0 : change_user(user, err);
	if (ret)
		return ret;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set(err, -errno, "cannot give up privileges: %s", strerror(errno));
	if (syscall(SYS_capget, &head, now) || now[0].permitted || now[1].permitted || !geteuid())
		return err_set(err, -EPERM, "privileges are still there after they were given up");
	return 0;
}
