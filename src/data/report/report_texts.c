// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Texts of samples that other rooms show, too. */
#include "report.h"

#include "cgroup/container.h"

const char *report_cgroup_text(const struct tasks *tasks, enum label key, __u64 id,
			       struct container *c, char *buf)
{
	struct container_name name;
	struct task_cgroup cgroup;

	if (!tasks_cgroup(tasks, id, &cgroup)) {
		snprintf(buf, CONTAINER_LABEL, "#%llu", (unsigned long long)id);
		return buf;
	}
	if (key == LABEL_CGROUP)
		return cgroup.path;
	if (!container_of_path(cgroup.path, NULL, c))
		return "";
	name = (struct container_name){ cgroup.container, cgroup.pod, cgroup.ns };
	return key == LABEL_CONTAINER ? container_label(c, &name, buf)
				      : container_pod_label(c, &name, buf);
}

/* The number of a thread in its OpenMP team and the order of start are not the same. */
bool report_role(const struct tasks *tasks, const struct trace_event *ev, char *buf, size_t size)
{
	const struct trace_sample *s = &ev->sample;
	__u32 number;
	__u64 addr;

	if (!s->has_task)
		return false;
	if (tasks_omp(tasks, s->tid, ev->time, &number, &addr))
		snprintf(buf, size, "omp %u", number);
	else if (tasks_started(tasks, s->tgid, s->tid, ev->time, &number))
		snprintf(buf, size, "start %u", number);
	else
		return false;
	return true;
}

bool report_omp_region(const struct tasks *tasks, struct symbols *symbols,
		       const struct trace_event *ev, char *buf, size_t size)
{
	const struct trace_sample *s = &ev->sample;
	struct symbol sym;
	__u32 number;
	__u64 addr;

	if (!s->has_task || !tasks_omp(tasks, s->tid, ev->time, &number, &addr) || !addr)
		return false;
	symbols_find(symbols, tasks, s->tgid, addr, ev->time, false, true, &sym);
	snprintf(buf, size, sym.srcline ? "%s %s" : "%s", sym.name, sym.srcline);
	return true;
}
