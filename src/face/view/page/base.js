/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
'use strict';
/* Shared by all pages, which define D: sources, near to far, and edges of buckets. */
const THIN = '\u202f', UNKNOWN = '\u2013', MINUS = '\u2212';
const id = name => document.getElementById(name);

/* ---- elements ---- */
function element(make, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false && !name.startsWith('aria-'))
			continue;
		if (name === 'on')
			for (const [event, handler] of Object.entries(value))
				make.addEventListener(event, handler);
		else
			make.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : value);
	}
	make.append(...children.filter(child => child !== null && child !== undefined));
	return make;
}
const html = (tag, attributes, ...children) => element(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
	element(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
const picture = (width, height, attributes) =>
	svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, ...attributes });
const box = (x, y, width, height) => `M${x} ${y}h${width}v${height}h${-width}z`;
const px = v => +v.toFixed(1);

/* ---- numbers ---- */
const count = n => Math.round(n).toLocaleString('en-US').replace('-', MINUS);
function percent(part, whole, digits = 1) {
	if (!(whole > 0) || part === null)
		return UNKNOWN;
	const v = 100 * part / whole;
	if (!v)
		return '0';
	if (v > 0 && v < .5 * 10 ** -digits)
		return '< ' + (10 ** -digits).toFixed(digits);
	return v.toFixed(digits);
}
/* One unit for a whole column, by its largest value: two decimals below 10, one below 100. */
function scaleOf(max) {
	const units = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
	const [by, prefix] = units.find(u => max >= u[0]) || units[4];
	const digits = by === 1 ? 0 : max / by < 10 ? 2 : max / by < 100 ? 1 : 0;
	return { prefix, text(v) {
		if (!v)
			return '0';
		const least = .5 * 10 ** -digits;
		return v / by < least ? '< ' + (10 ** -digits).toFixed(digits) : (v / by).toFixed(digits);
	} };
}
/* Three significant digits, for a single number. */
function figure(v) {
	if (!(v > 0))
		return '0';
	const s = scaleOf(v), scaled = v / 10 ** { T: 12, G: 9, M: 6, k: 3, '': 0 }[s.prefix];
	const text = s.prefix === '' ? Math.round(v).toString() : scaled < 10 ? scaled.toFixed(2) :
		scaled < 100 ? scaled.toFixed(1) : scaled.toFixed(0);
	return text + (s.prefix ? THIN + s.prefix : '');
}
const two = v => String(Math.floor(v)).padStart(2, '0');
function clock(seconds) {
	return [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60].map(two).join(':');
}

/* ---- latencies ---- */
const isRemote = source => source.startsWith('remote-');
const isMemory = source => /dram|cxl|pmem/.test(source);
const lowEdge = b => b ? D.edges[b - 1] + 1 : 0;
/* The upper edge of the bucket that holds the share @p, but no more than the maximum; null: too few samples. @samples: in all
 * buckets, if these are not of samples. */
function percentile(buckets, p, max = Infinity, samples = null) {
	let all = 0, below = 0;
	for (const n of buckets)
		all += n;
	if ((samples ?? all) * (1 - p) < 1 - 1e-9 || !all)
		return null;
	for (let b = 0; b < D.edges.length; b++)
		if ((below += buckets[b]) >= p * all - 1e-9)
			return Math.min(D.edges[b], max);
	return null;
}
/* ---- trust: as base/estimate.c and table_print_trust() ---- */
const FEW = 20, Z = 1.959964, UNSEEN = .5;
/* Half of the 95 % interval of a sum of weights over the sum. @e: sum, sum of squares, and the largest weight */
function errorOf({ cycles, squares, largest }) {
	const poisson = (n, z) => n * Math.max(1 - 1 / (9 * n) + z / (3 * Math.sqrt(n)), 0) ** 3;
	const bound = (sum, sq, z) => sq / sum * poisson(sum * sum / sq, z), unseen = UNSEEN * largest;
	return cycles > 0 && squares > 0 ? (bound(cycles + unseen, squares + unseen * largest, Z) - bound(cycles, squares, -Z)) / 2 / cycles : NaN;
}
const isWeak = sum => sum.valid < FEW;
const weakMark = sum => sum.valid && isWeak(sum) ? '~' : '';
/* @rows: sums, in the order of the table */
function trustText(rows) {
	const text = error => `±${(100 * error).toFixed(error < .1 ? 1 : 0)}%`, strong = rows.filter(r => !isWeak(r)).map(errorOf).filter(error => error >= 0);
	const weak = rows.some(weakMark), most = Math.max(...strong);
	if (!strong.length)
		return weak ? `every row has fewer than ${FEW} samples with a latency: sample longer` : '';
	return `95% intervals of cycles: ${text(strong[0])}` + (most > strong[0] ? ` (first row) to ${text(most)}` : '') + (weak ? `; ~ fewer than ${FEW} samples` : '');
}
const cyclesText = v => v === null ? UNKNOWN : count(v);

/* ---- small pictures ---- */
function sparkline(values, width, height) {
	const max = Math.max(...values, 1e-9), n = values.length;
	if (n < 2)
		return null;
	const x = i => px(1 + i * (width - 2) / (n - 1)), y = v => px(height - 1.5 - (height - 3) * v / max);
	const line = Array.from(values, (v, i) => `${x(i)} ${y(v)}`).join('L');
	const s = picture(width, height, { preserveAspectRatio: 'none', 'aria-hidden': 'true' });
	s.append(svg('path', { class: 'spark-area', d: `M1 ${height}L${line}L${width - 1} ${height}z` }),
		svg('path', { class: 'spark', d: 'M' + line }));
	return s;
}
/* @values by source. @ghost: value of the whole recording, as a pale bar behind. */
function shareBar(values, max, width, ghost) {
	const height = 12, s = picture(width, height, { 'aria-hidden': 'true' });
	let x = 0;
	if (ghost)
		s.append(svg('path', { class: 'ghost', d: box(0, 0, px(width * ghost / max), height) }));
	values.forEach((v, k) => {
		const w = width * v / max;
		if (w > .2)
			s.append(svg('path', { class: 'src-' + D.sources[k],
				d: box(px(x), ghost ? 2 : 0, px(w), ghost ? height - 4 : height) }));
		x += w;
	});
	return s;
}
/* Miss cycles by latency bucket, stacked by source; @at(bucket, source). */
function stackedHistogram(at, first, last, width, height) {
	const n = last - first + 1, s = picture(width, height, { 'aria-hidden': 'true' });
	const totals = new Float64Array(n), base = new Float64Array(n);
	for (let i = 0; i < n; i++)
		for (let k = 0; k < D.sources.length; k++)
			totals[i] += at(first + i, k);
	const max = Math.max(...totals, 1e-9), bar = width / n, y = v => height - 1 - (height - 2) * v / max;
	D.sources.forEach((source, k) => {
		let d = '';
		for (let i = 0; i < n; i++) {
			const v = at(first + i, k);
			if (v && (height - 2) * v / max > .1)
				d += box(px(i * bar), px(y(base[i] + v)), px(bar), px(y(base[i]) - y(base[i] + v)));
			base[i] += v;
		}
		if (d)
			s.append(svg('path', { class: 'src-' + source, d }));
	});
	s.append(svg('path', { class: 'grid', d: `M0 ${height - .5}h${width}` }));
	return s;
}
/* Colour steps; each is twice the one below, and the top one contains the largest value. */
function ramp(max, n = 8) {
	const top = Math.ceil(Math.log2(Math.max(max, 1e-9)));
	return {
		of: v => v > 0 ? Math.max(1, Math.min(n, n - (top - 1 - Math.floor(Math.log2(v))))) : 0,
		low: 2 ** (top - n), high: max,
	};
}
const onRamp = step => step <= 3 ? 'on-low' : step === 4 ? 'on-mid' : 'on-high';
function rampKey(r, text) {
	const steps = html('span', { 'aria-hidden': 'true' });
	for (let i = 1; i <= 8; i++)
		steps.append(html('i', { class: 'key a' + i }));
	return html('span', { class: 'ramp' }, text(r.low), steps, text(r.high));
}
/* The root cgroup has tasks of the host and of the kernel. */
const NO_CONTAINER = 'host, no container'; /* as the tables of the program */
const NO_CONTAINER_SHORT = NO_CONTAINER.slice(NO_CONTAINER.indexOf('no ')); /* where there is little room, or more of the name */
const nameText = name => name === '/' ? NO_CONTAINER : name.startsWith('/, ') ? NO_CONTAINER_SHORT + name.slice(1) : name;
/* The style shortens the path of a name, never its last part. */
function nameOf(name, tag, attributes) {
	const text = nameText(name), cut = text.lastIndexOf('/', text.length - 2) + 1;
	return html(tag, { class: 'name', title: name, ...attributes },
		cut ? html('span', {}, text.slice(0, cut)) : null, html('b', {}, text.slice(cut)));
}
/* @room letters of a name: its end, which tells it from others, and what is left of its start. */
function middleCut(name, room) {
	const letters = [...name], end = Math.ceil((room - 1) * 2 / 3);
	return letters.length <= room ? name : letters.slice(0, room - 1 - end).join('') + '…' + letters.slice(-end).join('');
}
/* The path and the last part, of which as much as is left, or "" and all of it. */
function partsOf(text, two) {
	const cut = two ? Math.max(text.lastIndexOf('/', text.length - 2), text.indexOf('…')) + 1 : 0;
	return [text.slice(0, cut), text.slice(cut)];
}
/* Cut names that are wider than their column, by letters, so that no gap is left in them. */
function fitNames(which = '.name') {
	const pen = document.createElement('canvas').getContext('2d');
	const width = (node, text) => {
		const style = getComputedStyle(node);
		pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
		return pen.measureText(text).width;
	};
	const names = [...document.querySelectorAll(which)].filter(e => e.title && e.clientWidth && getComputedStyle(e.lastChild).whiteSpace !== 'normal');
	const cuts = names.map(e => { /* read all, then write */
		const name = nameText(e.title), all = [...name].length, two = e.children.length > 1;
		const wide = ([start, end]) => width(e.firstChild, start) + width(e.lastChild, end) > e.clientWidth - 1;
		let room = all;
		if (name === NO_CONTAINER && wide(['', name])) /* a cut would leave out the "no" */
			return [e, ['', NO_CONTAINER_SHORT]];
		while (room > 4 && wide(partsOf(middleCut(name, room), two)))
			room--;
		return room < all ? [e, partsOf(middleCut(name, room), two)] : null;
	});
	for (const [e, [start, end]] of cuts.filter(c => c)) {
		e.classList.add('cut');
		if (e.localName === 'button')
			e.setAttribute('aria-label', nameText(e.title));
		e.firstChild.textContent = start;
		e.lastChild.textContent = end; /* the only child has all: see partsOf() */
	}
}
/* Move labels apart; they keep their order. */
function spread(labels, distance, low, high) {
	labels.sort((a, b) => a.y - b.y);
	for (let round = 0; round < 50; round++) {
		for (let i = 1; i < labels.length; i++) {
			const d = distance - (labels[i].y - labels[i - 1].y);
			if (d > 0) {
				labels[i].y += d / 2;
				labels[i - 1].y -= d / 2;
			}
		}
		for (const l of labels)
			l.y = Math.max(low, Math.min(high, l.y));
	}
	return labels;
}
