/* ---- time views ---- */
let cursor = null, anchor = null;
const LABEL = 13; /* height of a line of text */
/* As high as the column beside it, within limits. */
function heatHeight() {
	const usual = 286, least = 170, most = 560, views = id('time'), holder = id('heat');
	if (id('first').clientWidth < 2 * views.clientWidth)
		return usual;
	if (!holder.firstChild) /* what is around it, once it is drawn */
		return Math.max(least, Math.min(most, id('left').offsetHeight - 270));
	return Math.max(least, Math.min(most, id('left').offsetHeight - (views.offsetHeight - holder.offsetHeight) - 38));
}
function drawTime() {
	const holder = id('heat'), width = Math.max(280, holder.clientWidth), narrow = width < 430;
	const left = 42, right = narrow ? 8 : 128, top = 14, height = narrow ? 200 : heatHeight(), w = width - left - right;
	const [first, last] = usedBuckets(), log = v => Math.log2(Math.max(v, 1));
	const low = log(lowEdge(first)), high = log(D.edges[last]) || 1;
	const x = bin => left + Math.round(bin * w / T);
	const y = cycles => top + Math.round((high - log(cycles)) / Math.max(high - low, 1e-9) * height);
	/* cycles per height of the bucket, so that wide and narrow buckets can be compared */
	const octaves = b => Math.max(log(D.edges[b]) - log(lowEdge(b) - 1), 1 / 16);
	const density = (t, b) => R.heat[t * L + b] / octaves(b) / (byCycles ? D.bin_s : 1) / 8;
	let max = 0;
	for (let t = 0; t < T; t++)
		for (let b = first; b <= last; b++)
			max = Math.max(max, density(t, b));
	const r = ramp(max), paths = Array(9).fill('');
	for (let b = first; b <= last; b++) {
		const y1 = y(D.edges[b]), y0 = b === first ? top + height : y(lowEdge(b) - 1);
		for (let t = 0, from = 0, step = 0; t <= T; t++) {
			const next = t < T ? r.of(density(t, b)) : 0;
			if (next === step)
				continue;
			if (step)
				paths[step] += box(x(from), y1, x(t) - x(from), Math.max(1, y0 - y1));
			step = next;
			from = t;
		}
	}
	const heat = picture(width, height + top + 24, { tabindex: 0, role: 'application',
		'aria-label': 'Latency over time. Arrow keys move, Shift and arrows select, Enter selects a column, Escape clears.' });
	heat.append(svg('path', { class: 'plot', d: box(left, top, w, height) }),
		...paths.map((d, i) => d ? svg('path', { class: 'a' + i, d, 'shape-rendering': 'crispEdges' }) : null).filter(p => p));
	for (let v = 2 ** Math.ceil(low), free = Infinity; v <= D.edges[last]; v *= 2) {
		heat.append(svg('path', { class: 'axis', d: `M${left - 4} ${y(v) + .5}h4` }));
		if (y(v) > free)
			continue;
		heat.append(svg('text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, count(v)));
		free = y(v) - LABEL;
	}
	timeAxis(heat, x, top + height);
	if (!narrow)
		drawMargin(heat, width - right + 4, y, top, height, first, last);
	const over = svg('g', {}), hit = svg('path', { class: 'hit', d: box(left, top, w, height) });
	heat.append(over, hit);
	holder.replaceChildren(heat);
	id('heat-ramp').replaceChildren(rampKey(r, v => byCycles ? figure(v) + '/s' : figure(v)));

	const mixHeight = narrow ? 84 : 104, mix = drawMix(width, mixHeight, left, right, x);
	const over2 = svg('g', {}), hit2 = svg('path', { class: 'hit', d: box(left, 4, w, mixHeight) });
	mix.append(over2, hit2);
	id('mix').replaceChildren(mix);

	const brush = () => {
		over.replaceChildren();
		over2.replaceChildren();
		if (selected.time || selected.bucket) {
			const t = selected.time || [0, T - 1], b = selected.bucket || [first, last];
			const x0 = x(t[0]), x1 = x(t[1] + 1), y0 = b[0] <= first ? top + height : y(lowEdge(b[0]) - 1), y1 = y(D.edges[Math.min(b[1], last)]);
			over.append(svg('path', { class: 'veil', 'fill-rule': 'evenodd', d: box(left, top, w, height) + box(x0, y1, x1 - x0, y0 - y1) }),
				svg('path', { class: 'brush', d: box(x0, y1, x1 - x0, y0 - y1) }));
			if (selected.time)
				over2.append(svg('path', { class: 'veil', 'fill-rule': 'evenodd', d: box(left, 4, w, mixHeight) + box(x0, 4, x1 - x0, mixHeight) }),
					svg('path', { class: 'brush', d: box(x0, 4, x1 - x0, mixHeight) }));
		}
		if (cursor)
			over.append(svg('path', { class: 'cursor', d: box(x(cursor.t) - 1, y(D.edges[cursor.b]) - 1, Math.max(5, x(cursor.t + 1) - x(cursor.t) + 2), 6) }));
	};
	const read = p => {
		let sum = 0, most = 0;
		for (let k = 0; k < S; k++) {
			sum += R.mix[p.t * S + k];
			most = R.mix[p.t * S + k] > R.mix[p.t * S + most] ? k : most;
		}
		const v = p.b === undefined ? 0 : R.heat[p.t * L + p.b];
		id('read').replaceChildren(html('b', {}, at(p.t)), p.b === undefined ? ' ' :
			` ${latencyText([p.b, p.b])}: ${byCycles ? figure(v / D.bin_s) + '/s' : count(v) + (D.strata ? ' ops' : ' samples')}. `,
		`All latencies: ${figure(sum / D.bin_s)}/s, ${percent(R.mix[p.t * S + most], sum)}${THIN}% ${D.sources[most]}.`);
	};
	id('read').textContent = `Point at a chart to read its values. One cell is ${D.bin_s >= 1 ? +D.bin_s.toFixed(1) + ' s' : Math.round(D.bin_s * 1000) + ' ms'} by one bucket (⅛ octave at most).`;
	const where = (e, of) => {
		const rect = of.getBoundingClientRect(), mx = e.clientX - rect.left, my = e.clientY - rect.top;
		const t = Math.max(0, Math.min(T - 1, Math.floor((mx - left) / w * T)));
		let b = last;
		while (b > first && y(lowEdge(b) - 1) < my)
			b--;
		return { t, b, mx, my };
	};
	const drag = (of, node, withLatency) => {
		let from = null, moved = false;
		node.addEventListener('pointerdown', e => {
			from = where(e, of);
			moved = false;
			node.setPointerCapture(e.pointerId);
		});
		node.addEventListener('pointermove', e => {
			const p = where(e, of);
			read(withLatency ? p : { t: p.t });
			if (!from || Math.abs(p.mx - from.mx) < 4 && Math.abs(p.my - from.my) < 4)
				return;
			moved = true;
			const tall = withLatency && e.pointerType !== 'touch' && Math.abs(p.my - from.my) > 6;
			selected.time = Math.abs(p.mx - from.mx) < 4 ? null : [Math.min(from.t, p.t), Math.max(from.t, p.t)];
			if (withLatency)
				selected.bucket = tall ? [Math.min(from.b, p.b), Math.max(from.b, p.b)] : null;
			brush();
			later();
		});
		node.addEventListener('pointerup', () => {
			if (from && !moved)
				choose(withLatency ? { time: null, bucket: null } : { time: null });
			else if (from)
				draw();
			from = null;
		});
	};
	drag(heat, hit, true);
	drag(mix, hit2, false);
	heat.addEventListener('keydown', e => {
		const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
		if (e.key === 'Enter' && cursor)
			choose({ time: [cursor.t, cursor.t] });
		if (!step)
			return;
		e.preventDefault();
		cursor = cursor || { t: T >> 1, b: first + last >> 1 };
		anchor = e.shiftKey ? anchor || { ...cursor } : null;
		cursor = { t: Math.max(0, Math.min(T - 1, cursor.t + step[0])), b: Math.max(first, Math.min(last, cursor.b + step[1])) };
		if (anchor) {
			selected.time = [Math.min(anchor.t, cursor.t), Math.max(anchor.t, cursor.t)];
			selected.bucket = anchor.b === cursor.b ? null : [Math.min(anchor.b, cursor.b), Math.max(anchor.b, cursor.b)];
			later();
		}
		brush();
		read(cursor);
	});
	brush();
}
function timeAxis(s, x, y) {
	/* the first and the last label lie inside, so that they reach half a label farther towards the next */
	const steps = Math.max(1, Math.min(5, Math.floor((x(T) - x(0)) / (1.5 * 6.8 * at(0).length + 8))));
	for (let i = 0, before = ''; i <= steps; i++) {
		const bin = i * T / steps, text = at(bin);
		s.append(svg('path', { class: 'axis', d: `M${x(bin) + .5} ${y}v4` }));
		if (text !== before)
			s.append(svg('text', { x: x(bin), y: y + 16, 'text-anchor': i === 0 ? 'start' : i === steps ? 'end' : 'middle' }, text));
		before = text;
	}
}
/* Labels that do not touch, in order: the largest of them, as many as there is room for. */
function spreadApart(labels, low, high) {
	const list = labels.sort((a, b) => b.size - a.size).slice(0, 1 + Math.floor((high - low) / LABEL));
	spread(list, LABEL, low, high);
	for (let i = 1; i < list.length; i++)
		list[i].y = Math.max(list[i].y, list[i - 1].y + LABEL);
	for (let i = list.length - 1, free = high; i >= 0; free = list[i--].y - LABEL)
		list[i].y = Math.min(list[i].y, free);
	return list;
}
/* The cost of each latency by source, and the median of each source. */
function drawMargin(s, x0, y, top, height, first, last) {
	let max = 1e-9;
	const labels = [], width = 30, base = new Float64Array(L);
	for (let b = first; b <= last; b++) {
		let sum = 0;
		for (let k = 0; k < S; k++)
			sum += R.margin[b * S + k];
		max = Math.max(max, sum);
	}
	D.sources.forEach((name, k) => {
		const samples = new Float64Array(L);
		let d = '';
		for (let b = first; b <= last; b++) {
			const v = R.margin[b * S + k], y1 = y(D.edges[b]);
			samples[b] = R.marginN[b * S + k];
			if (v / max * width > .2)
				d += box(px(x0 + base[b] / max * width), y1, px(v / max * width), Math.max(1, (b === first ? top + height : y(lowEdge(b) - 1)) - y1));
			base[b] += v;
		}
		if (d)
			s.append(svg('path', { class: 'src-' + name, d, 'shape-rendering': 'crispEdges' }));
		const middle = percentile(samples, .5);
		if (middle !== null && d)
			labels.push({ name, y: y(middle), size: samples.reduce((a, v) => a + v, 0) });
	});
	s.append(svg('text', { x: x0, y: 10 }, 'by source'));
	for (const l of spreadApart(labels, top + 8, top + height - 6))
		s.append(svg('path', { class: 'src-' + l.name, d: box(x0 + width + 4, Math.round(l.y) - 4, 7, 7) }),
			svg('text', { x: x0 + width + 14, y: Math.round(l.y) + 4, class: 'ink' }, l.name));
}
function drawMix(width, height, left, right, x) {
	const s = picture(width, height + 24, { role: 'img', 'aria-label': 'Miss cycles over time, stacked by source' }), top = 4;
	const sum = new Float64Array(T), base = new Float64Array(T), labels = [];
	for (let t = 0; t < T; t++)
		for (let k = 0; k < S; k++)
			sum[t] += R.mix[t * S + k] / D.bin_s;
	const max = Math.max(...sum, 1e-9), scale = scaleOf(max), y = v => px(top + height - v / max * height);
	id('mix-unit').textContent = `miss cycles, ${scale.prefix}/s, near at the bottom`;
	s.append(svg('path', { class: 'plot', d: box(left, top, width - left - right, height) }));
	for (const part of [.5, 1])
		s.append(svg('text', { x: left - 6, y: y(max * part) + (part === 1 ? 9 : 4), 'text-anchor': 'end' }, scale.text(max * part)));
	D.sources.forEach((name, k) => {
		let up = '', down = '', mean = 0, under = 0, any = false;
		for (let t = 0; t < T; t++) {
			const v = R.mix[t * S + k] / D.bin_s;
			up += (t ? 'V' : `M${x(0)} `) + y(base[t] + v) + `H${x(t + 1)}`;
			down = `V${y(base[t])}H${x(t)}` + down;
			if (t >= T - 8) {
				mean += v / 8;
				under += base[t] / 8;
			}
			any = any || v > 0;
			base[t] += v;
		}
		if (!any)
			return;
		s.append(svg('path', { class: 'src-' + name, d: up + down + 'z', opacity: selected.source !== null && selected.source !== k ? .25 : 1 }));
		if (mean > 0)
			labels.push({ name, y: y(under + mean / 2), size: mean });
	});
	if (right > 20)
		for (const l of spreadApart(labels, top + 6, top + height - 4))
			s.append(svg('path', { class: 'src-' + l.name, d: box(width - right + 6, Math.round(l.y) - 4, 7, 7) }),
				svg('text', { x: width - right + 16, y: Math.round(l.y) + 4, class: 'ink' }, l.name));
	timeAxis(s, x, top + height);
	return s;
}

/* ---- drawing ---- */
let pending = 0, drawnWidth = 0;
function later() {
	pending = pending || requestAnimationFrame(() => {
		pending = 0;
		drawAllButTime();
	});
}
function drawAllButTime() {
	/* `whole` was computed at the start, by miss cycles */
	R = byCycles && DIMENSIONS.every(d => selected[d] === null) ? whole : scan();
	drawLegend();
	drawFigures();
	drawTable();
	drawAxes();
	drawTopology();
	drawCode();
	drawSites();
	drawLines();
	fitNames();
}
function draw() {
	const active = document.activeElement, focus = active?.dataset?.focus, holder = active?.closest?.('#heat, #flame, #machine, #matrix, #axes > figure')?.id;
	drawAllButTime();
	drawTime();
	writeLink();
	if (focus)
		document.querySelector(`[data-focus="${focus}"]`)?.focus();
	if (holder)
		id(holder)?.firstChild.focus();
}
/* A selection as a link: file.html#select&source=dram&group=/a&time=3,9&bucket=40,50 */
function writeLink() {
	const words = ['select'];
	if (selected.group !== null)
		words.push('group=' + encodeURIComponent(D.groups[selected.group].name));
	if (selected.source !== null)
		words.push('source=' + D.sources[selected.source]);
	for (const name of ['time', 'bucket', 'place', 'code', 'memory'])
		if (selected[name] !== null)
			words.push(`${name}=${selected[name]}`);
	for (const name of ['rank', 'role', 'region', 'site'])
		if (selected[name] !== null)
			words.push(`${name}=` + [selected[name]].flat().map(i => encodeURIComponent(D.names[name][i])).join());
	if (words.length > 1 || location.hash.startsWith('#select'))
		history.replaceState(null, '', words.length > 1 ? '#' + words.join('&') : location.pathname);
}
function readLink() {
	if (!location.hash.startsWith('#select&'))
		return;
	const words = new URLSearchParams(location.hash.slice(8));
	const index = (list, value) => list.indexOf(value) < 0 ? null : list.indexOf(value);
	const range = (text, end) => {
		const [a, b] = (text || '').split(',').map(Number);
		return a >= 0 && b >= a && b < end ? [a, b] : null;
	};
	const named = name => words.has(name) ? index(D.names[name], words.get(name)) : null;
	const ranks = (words.get('rank') ?? 'none').split(',').map(text => D.names.rank.indexOf(text));
	const code = +words.get('code'), [level, n] = (words.get('place') || '').split(',');
	Object.assign(selected, { place: D.cpus.some(c => c[level] === +n) ? [level, +n] : null,
		code: code && Number.isInteger(code) && frameOf(code) !== undefined ? code : null, group: index(D.groups.map(g => g.name), words.get('group')), source: index(D.sources, words.get('source')),
		rank: range(ranks.join(), D.names.rank.length), role: named('role'),
		region: named('region'), site: named('site'), memory: words.has('memory') ? range(words.get('memory') + ',' + words.get('memory'), D.memories + 1)?.[0] ?? null : null,
		time: range(words.get('time'), T), bucket: range(words.get('bucket'), L) });
}
async function start() {
	await readColumns();
	whole = scan();
	AXES = makeAxes();
	whole = scan();
	R = whole;
	drawFacts();
	drawFindings();
	readLink();
	draw();
	drawnWidth = innerWidth;
	id('by-cycles').onclick = id('by-samples').onclick = e => {
		byCycles = e.target.id === 'by-cycles';
		id('by-cycles').setAttribute('aria-pressed', byCycles);
		id('by-samples').setAttribute('aria-pressed', !byCycles);
		draw();
	};
	id('copy').onclick = () => navigator.clipboard?.writeText(id('command').textContent);
	id('unzoom').onclick = () => choose({ code: null });
	addEventListener('keydown', e => {
		if (e.key === 'Escape') {
			cursor = anchor = null;
			clear();
		}
	});
	addEventListener('resize', () => {
		if (innerWidth !== drawnWidth) {
			drawnWidth = innerWidth;
			draw();
		}
	});
	/* print the wide layout, whatever the size of the window */
	addEventListener('beforeprint', () => {
		document.documentElement.classList.add('printing');
		draw();
	});
	addEventListener('afterprint', () => {
		document.documentElement.classList.remove('printing');
		draw();
	});
	for (const link of document.querySelectorAll('nav a'))
		link.hidden = !id(link.hash.slice(1)).offsetParent;
	document.body.dataset.ready = 'yes';
}
start();
