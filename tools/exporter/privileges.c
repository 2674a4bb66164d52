// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stddef.h>
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
		return err_set(err, -EINVAL, "--user: unknown user '%.100s'", user);
	if (!pw->pw_uid)
		return err_set(err, -EINVAL,
			       "--user: '%.100s' has uid 0: name a user without privileges", user);
	if (setgroups(0, NULL) || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid))
		return err_set(err, -errno, "cannot switch to user %s: %s", user, strerror(errno));
	return 0;
}

/* Needs CAP_SETPCAP; a process without it has nothing to drop. */
static void drop_bounding(void)
{
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Skip the next instruction unless the value is @v */
#define UNLESS(v) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 0, 1)
#define ALLOW	  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE	  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define NOT(call) UNLESS(SYS_##call), REFUSE

/*
 * Forbid what an attacker could use and the exporter never needs: other programs, other processes,
 * namespaces, modules, and bpf() except for opening pins and reading maps. Profiles of container
 * runtimes cannot express this: they allow all of bpf() or none.
 */
static void restrict_calls(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		REFUSE,
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32 */
		REFUSE,
		NOT(execve),
		NOT(execveat),
#ifndef __SANITIZE_ADDRESS__ /* LeakSanitizer needs ptrace() */
		NOT(ptrace),
#endif
		NOT(process_vm_readv),
		NOT(process_vm_writev),
		NOT(unshare),
		NOT(setns),
		NOT(mount),
		NOT(umount2),
		NOT(pivot_root),
		NOT(chroot),
		NOT(init_module),
		NOT(finit_module),
		NOT(delete_module),
		NOT(kexec_load),
		NOT(perf_event_open),
		NOT(open_by_handle_at),
		NOT(userfaultfd),
		NOT(add_key),
		NOT(request_key),
		NOT(keyctl),
#ifdef SYS_io_uring_setup
		NOT(io_uring_setup),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 1, 0),
		ALLOW,
		LOAD(args[0]),
		UNLESS(BPF_OBJ_GET),
		ALLOW,
		UNLESS(BPF_MAP_LOOKUP_ELEM),
		ALLOW,
		UNLESS(BPF_MAP_LOOKUP_BATCH),
		ALLOW,
		UNLESS(BPF_OBJ_GET_INFO_BY_FD),
		ALLOW,
		REFUSE,
	};
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]),
					    .filter = filter };

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		log_debug("no seccomp filter: %s", strerror(errno));
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
		return err_set(err, -errno, "cannot drop privileges: %s", strerror(errno));
	restrict_calls();
	if (syscall(SYS_capget, &head, now) || now[0].permitted || now[1].permitted || !geteuid())
		return err_set(err, -EPERM, "privileges remain after dropping them");
	return 0;
}
