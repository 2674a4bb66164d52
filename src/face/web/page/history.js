/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ---- the history of the exporter, and what is selected of it ---- */
const past = { on: false, opened: null, after: 0, names: new Map(), length: 0, offset: Date.now() / 1000, gaps: [] };
let range = null, cursor = null, anchor = null, menu = '60', dragging = false; /* [begin, end] in seconds; indexes of intervals */
const wall = t => new Date((t + past.offset) * 1000).toTimeString().slice(0, 8);

/* A row as /api/snapshot.json has it. */
function restored(row, d, of, estimated) {
	const c = { ...(row.id ? past.names.get(row.id) : { container: 'other', cgroup: 'other' }), tlb: Object.fromEntries(d.tlb_members.map((k, i) => [k, row.tlb[i]])), [of]: {},
		...row.exposed && { exposed: { cycles: row.exposed[0], unknown_samples: row.exposed[1] } } };
	for (const [name, numbers] of Object.entries(row[of])) {
		const s = c[of][name] = Object.fromEntries(d.source_members.map((k, i) => [k === 'estimated' ? estimated : k, numbers[i]])), flat = s.buckets;
		s.buckets = [];
		for (let i = 0; i < flat.length; i += 2)
			s.buckets.push([flat[i], flat[i + 1]]);
	}
	return c;
}
function learn(names) {
	for (const { id, ...labels } of names)
		past.names.set(id, labels);
}
function takeInterval(i, d) {
	past.after = i.number || past.after;
	if (i.gap !== undefined) {
		past.gaps.push({ begin: i.begin_s, end: i.end_s, why: i.gap });
		return;
	}
	learn(i.names);
	intervals.push({ begin: i.begin_s, end: i.end_s, partial: i.partial, leftOut: i.left_out, ledger: i.ledger, fetchLedger: i.fetch ? i.fetch.ledger : i.ledger,
		containers: i.groups.filter(g => g.sources).map(g => restored(g, d, 'sources', 'estimated_ops')),
		fetches: (i.fetch || i).groups.filter(g => g.fetches).map(g => restored(g, d, 'fetches', 'estimated_fetches')) });
}
/* An exporter without a history leaves the page with what it sees itself. */
async function pollHistory() {
	const r = await fetch(`api/history.json?after=${past.after}`, { cache: 'no-store' }), d = r.ok ? await r.json() : {};
	if (!Array.isArray(d.intervals) || !(d.length_s > 0))
		return;
	if (past.opened !== null && past.opened !== d.opened_s && d.after) {
		past.after = 0;
		return pollHistory();
	}
	if (d.opened_s !== past.opened || !d.after) {
		intervals.length = past.gaps.length = 0;
		past.names.clear();
	}
	past.gaps = past.gaps.filter(g => !d.intervals.some(i => i.gap !== undefined && i.begin_s === g.begin));
	past.on = true;
	past.opened = d.opened_s;
	past.after = d.after;
	past.length = d.length_s;
	past.offset = Date.now() / 1000 - d.now_s;
	d.intervals.forEach(i => takeInterval(i, d));
	for (let kept = intervals.reduce((n, i) => n + i.end - i.begin, 0); kept > 1.1 * past.length; kept -= intervals[0].end - intervals.shift().begin);
}

/* ---- what is shown ---- */
const shown = () => frozen ? intervals.filter(i => i.end <= frozen.until) : intervals;
const lastEnd = () => shown().length ? shown()[shown().length - 1].end : (frozen || latest).time_s;
const within = (begin, end) => shown().filter(i => (i.begin + i.end) / 2 > begin && (i.begin + i.end) / 2 < end);
const lengthOf = list => list.reduce((n, i) => n + i.end - i.begin, 0);
/* Seconds of the menu; without intervals there is only what was counted since the start. */
const wanted = () => range ? range[1] - range[0] : shown().length ? +menu : 0;
const counts = d => d.alive || d.orphaned;
/* Groups that the history had no room for are not lost, but have no row. */
function leftOutText(list) {
	const n = Math.max(0, ...list.map(i => i.leftOut || 0));
	return n ? ` ${n === 1 ? '1 group has no row of its own and is' : `Up to ${n} groups in an interval have no rows of their own and are`} in "other": the history is full.` : '';
}
function rangeText(list, d) {
	const length = time(lengthOf(list)), partial = (list.some(i => i.partial) ? ' The collector started or ended in it: rates are too low.' : '') + leftOutText(list);
	if (range)
		return `${wall(range[0])} to ${wall(range[1])}, ${length}.${partial}`;
	return counts(d) ? `The last ${length}.${partial}` : `The last ${length} that were sampled, up to ${wall(lastEnd())}.${partial}`;
}
/* The parts that a table adds up, and those of the same time before it: of intervals, or everything since the counters of @d began. */
function windowOf(d, of) {
	const want = wanted(), end = range ? range[1] : lastEnd(), list = want ? within(end - want, end) : [], before = want ? within(end - 2 * want, end - want) : [];
	if (!want)
		return { parts: [d.containers], seconds: Math.max(Date.now() / 1000 - d.start_s - (counts(d) ? 0 : d.age_s), 1e-9), text: shown().length ? 'Since the counters began.' : 'Since the counters began, until there are two readings.', before: null };
	return { parts: list.map(i => i[of]), seconds: Math.max(lengthOf(list), 1e-9), text: rangeText(list, d),
		before: lengthOf(before) >= .5 * lengthOf(list) && before.length ? { parts: before.map(i => i[of]), seconds: lengthOf(before) } : null };
}
/* What trends and the chart of latencies cover. */
function span() {
	if (range)
		return range;
	const want = Math.max(KEEP_S, wanted()), end = lastEnd();
	return [Math.max(end - want, shown()[0]?.begin ?? end - want), end];
}
function sumLedgers(list) {
	const sum = { seen: 0, aggregated: 0, forwarded: 0, filtered: {}, lost: {}, unseen: 0 };
	for (const l of list) {
		for (const key of ['seen', 'aggregated', 'forwarded'])
			sum[key] += l[key];
		for (const key of ['filtered', 'lost'])
			for (const [why, n] of Object.entries(l[key]))
				sum[key][why] = (sum[key][why] || 0) + n;
		sum.unseen = sum.unseen === null || l.unseen === null ? null : sum.unseen + l.unseen;
	}
	return sum;
}
/* Of the selected range, or since the start. */
const ledgerOf = (d, key) => range && past.on ? sumLedgers(within(...range).map(i => i[key])) : d.ledger;

/* Change of a rate; noise is what two counts of samples differ by anyway, with latencies that vary as much as their mean. */
function changeOf(now, old, w) {
	if (!w.before || !old || !old.samples || !now.samples)
		return { text: UNKNOWN, css: ' unknown' };
	const change = now.cycles / w.seconds / (old.cycles / w.before.seconds) - 1;
	if (!isFinite(change) || Math.abs(change) < 2 * Math.sqrt(2 / now.samples + 2 / old.samples))
		return { text: isFinite(change) ? '~' : UNKNOWN, css: ' unknown' };
	const size = Math.abs(change) * 100;
	return { text: (change > 0 ? '\u25b2 +' : '\u25bc ' + MINUS) + (size < 1000 ? size.toFixed(0) : '> 999'), css: change > 0 ? ' worse' : ' better' };
}

/* ---- the chart of all of it ---- */
function select(begin, end) {
	range = begin < end ? [begin, end] : null;
	draw();
}
function totalsOf(i) {
	if (!i.totals) {
		i.totals = new Float64Array(S);
		for (const c of i.containers)
			D.sources.forEach((name, k) => { i.totals[k] += c.sources[name] ? missCycles(c.sources[name]) : 0; });
		if (!i.containers.length)
			for (const c of i.fetches)
				for (const s of Object.values(c.fetches))
					i.totals[S - 1] += s.estimated_fetches;
	}
	return i.totals;
}
function readTime(list) {
	const c = cursor !== null && list[cursor];
	id('time-read').textContent = range ? `${wall(range[0])} to ${wall(range[1])} against the ${time(range[1] - range[0])} before. Esc clears.` :
		c ? `${wall(c.begin)} to ${wall(c.end)}: ${figure(totalsOf(c).reduce((a, b) => a + b) / (c.end - c.begin))}/s` : 'Drag to select a time, or use arrows and Shift.';
}
function drawTime() {
	const list = shown(), holder = id('time');
	id('past').hidden = !past.on || list.length < 2;
	if (id('past').hidden)
		return;
	const width = Math.max(280, holder.clientWidth), left = 42, top = 3, height = 40, w = width - left - 8, focus = holder.contains(document.activeElement);
	const end = list[list.length - 1].end, begin = list[0].begin, x = t => left + Math.max(0, Math.min(w, w * (t - begin) / (end - begin)));
	const sums = list.map(i => totalsOf(i).reduce((n, v, k) => n + (source === null || source === k ? v : 0), 0) / (i.end - i.begin)), max = Math.max(...sums, 1e-9), scale = scaleOf(max);
	const s = picture(width, top + height + 16, { tabindex: 0, role: 'application', 'aria-describedby': 'time-read',
		'aria-label': `${isFetch(frozen || latest) ? 'Fetches' : 'Miss cycles'} from ${wall(begin)} to ${wall(end)}. Arrow keys move, Shift and arrows select, Escape clears.` });
	s.append(svg('path', { class: 'plot', d: box(left, top, w, height) }));
	const base = new Float64Array(list.length);
	D.sources.forEach((name, k) => {
		let d = '';
		list.forEach((i, n) => {
			const v = source === null || source === k ? totalsOf(i)[k] / (i.end - i.begin) : 0, x0 = px(x(i.begin));
			if (height * v / max > .2)
				d += box(x0, px(top + height - height * (base[n] + v) / max), Math.max(.5, px(x(i.end) - x0)), px(height * v / max));
			base[n] += v;
		});
		if (d)
			s.append(svg('path', { class: 'src-' + name, d }));
	});
	for (const g of past.gaps.filter(g => g.end > begin && g.begin < end))
		s.append(svg('path', { class: 'gap', d: box(px(x(g.begin)), top, Math.max(1, px(x(g.end) - x(g.begin))), height) }, svg('title', {}, g.why)));
	s.append(svg('text', { x: left - 6, y: top + 9, 'text-anchor': 'end' }, scale.text(max)), svg('text', { x: left - 6, y: top + height, 'text-anchor': 'end' }, scale.prefix + '/s'));
	const steps = Math.max(1, Math.min(6, Math.floor(w / 110)));
	for (let i = 0; i <= steps; i++)
		s.append(svg('text', { x: px(left + w * i / steps), y: top + height + 13, 'text-anchor': i === 0 ? 'start' : i === steps ? 'end' : 'middle' }, wall(begin + (end - begin) * i / steps)));
	const over = svg('g', {}), hit = svg('path', { class: 'hit', d: box(left, top, w, height) });
	s.append(over, hit);
	const brush = () => {
		over.replaceChildren();
		if (range) {
			const x0 = px(x(range[0])), wide = Math.max(1, px(x(range[1]) - x(range[0])));
			over.append(svg('path', { class: 'veil', 'fill-rule': 'evenodd', d: box(left, top, w, height) + box(x0, top, wide, height) }), svg('path', { class: 'brush', d: box(x0, top, wide, height) }));
		}
		if (cursor !== null && list[cursor])
			over.append(svg('path', { class: 'cursor', d: box(px(x(list[cursor].begin)), top, Math.max(2, px(x(list[cursor].end) - x(list[cursor].begin))), height) }));
		readTime(list);
	};
	const at = e => {
		const t = begin + (e.clientX - s.getBoundingClientRect().left - left) / w * (end - begin), k = list.findIndex(i => t < i.end);
		return k < 0 ? list.length - 1 : k;
	};
	const choose = (a, b) => { range = [list[Math.min(a, b)].begin, list[Math.max(a, b)].end]; };
	let from = null, moved = false;
	hit.addEventListener('pointerdown', e => {
		from = at(e);
		moved = false;
		hit.setPointerCapture(e.pointerId);
	});
	hit.addEventListener('pointermove', e => {
		cursor = at(e);
		moved = moved || from !== null && cursor !== from;
		if (moved && from !== null)
			choose(from, cursor);
		brush();
	});
	hit.addEventListener('pointerup', () => {
		if (from !== null && !moved)
			range = null;
		from = null;
		dragging = false;
		draw();
	});
	hit.addEventListener('pointercancel', () => { dragging = false; });
	hit.addEventListener('pointerdown', () => { dragging = true; });
	hit.addEventListener('pointerleave', () => {
		cursor = from === null ? null : cursor;
		brush();
	});
	s.addEventListener('keydown', e => {
		const to = { ArrowLeft: (cursor ?? list.length) - 1, ArrowRight: (cursor ?? -1) + 1, Home: 0, End: list.length - 1 }[e.key];
		if (to === undefined)
			return;
		e.preventDefault();
		anchor = e.shiftKey ? anchor ?? cursor ?? to : null;
		cursor = Math.max(0, Math.min(list.length - 1, to));
		if (e.shiftKey) {
			choose(anchor, cursor);
			draw();
		} else {
			brush();
		}
	});
	brush();
	holder.replaceChildren(s);
	if (focus)
		s.focus();
}
addEventListener('keydown', e => {
	if (e.key === 'Escape' && (range || cursor !== null)) {
		range = cursor = anchor = null;
		draw();
	}
});
