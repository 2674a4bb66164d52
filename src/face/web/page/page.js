/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
const EVERY_MS = 5000, FIRST_MS = 1500, KEEP_S = 600, ROWS = 30;
const NEAR_TO_FAR = ['l1', 'l2', 'l3', 'local-cache', 'near-cache', 'remote-cache', 'dram', 'remote-dram', 'pmem', 'remote-pmem', 'cxl',
	'remote-cxl', 'io', 'peer', 'uncached', 'mab', 'unknown', 'none'];
/* The buckets of ibscope: exact up to 8, then eight per octave. */
const D = { sources: NEAR_TO_FAR, edges: Array.from({ length: 113 }, (_, b) => b < 9 ? b : Math.min(65535, (9 + (b - 9) % 8) * 2 ** Math.floor((b - 9) / 8))) };
const S = D.sources.length, L = D.edges.length, BUCKET = new Map(D.edges.map((le, b) => [le, b]));
const bytes = n => (n / 1048576).toFixed(1) + ' MiB';
const time = s => s < 120 ? s.toFixed(1) + ' s' : s < 7200 ? (s / 60).toFixed(0) + ' min' : s < 172800 ? (s / 3600).toFixed(1) + ' h' : (s / 86400).toFixed(1) + ' d';
const share = x => !isFinite(x) ? UNKNOWN : percent(x, 1, x && x < .1 ? 2 : 1) + ' %';

/* Labels that --by can add to those of the workload. */
const OTHERS = ['pid', 'tid', 'comm', 'cpu', 'ccx', 'node', 'mem_node', 'mode'];
const keyOf = c => JSON.stringify(['namespace', 'pod', 'container', 'cgroup', ...OTHERS].map(k => c[k]));
const workload = c => [c.namespace, c.pod, c.container].filter(p => p).join('/') || c.cgroup;
const title = c => [workload(c), ...OTHERS.filter(k => c[k] !== undefined).map(k => `${k} ${c[k]}`)].filter(p => p).join(', ') || 'all';

/* A cgroup that was gone, or counted, before the collector had read its name. */
const isUnnamed = c => /^#\d+$/.test(workload(c)), UNNAMED = 'unnamed';
/*
 * The row that a group is in, and its name. Groups that the counters no longer have ended, or made room for busier ones; of
 * those before the counters began nothing is known.
 */
function rowOf() {
	const d = frozen || latest, known = d.alive && !(past.on && span()[0] < d.start_s - past.offset), lives = known && new Set([d, fetchesOf(d)].flatMap(e => e?.containers || []).map(keyOf));
	return c => {
		const key = keyOf(c), gone = lives && !lives.has(key) && c.cgroup !== 'other';
		return isUnnamed(c) ? { key: UNNAMED, own: key, name: UNNAMED } : { key, own: key, name: title(c) + (!gone ? '' : d.groups_displaced ? ' (ended or in other)' : ' (ended)') };
	};
}

let latest = null, frozen = null, chosen = null, source = null, sortColumn = null, sorted = 'cycles', sortDown = true; /* sorted: the one in use, where none was chosen */
const intervals = []; /* { begin, end, containers, fetches }: counts between two readings */

const isFetch = d => ['fetch_lat', 'itlb_refill_lat'].includes(d.metric), fetchesOf = d => d.fetch || (isFetch(d) ? d : null);

/* Where only the exported edges are kept, buckets are too wide for percentiles. */
const latencyAt = (buckets, q) => (frozen || latest).coarse_histograms ? null : percentile(buckets, q);

/* The difference to an older reading, of `sources` or `fetches`. Counters that decreased have restarted from zero. */
function since(now, old, of) {
	const before = new Map((old?.containers || []).map(c => [keyOf(c), c]));
	return (now?.containers || []).map(c => {
		const was = before.get(keyOf(c)), parts = {};
		if (!was || was.tlb.l2_hit + was.tlb.l2_miss > c.tlb.l2_hit + c.tlb.l2_miss)
			return c;
		for (const [name, s] of Object.entries(c[of])) {
			const o = was[of][name];
			if (!o || o.samples > s.samples) {
				parts[name] = s;
			} else if (o.samples < s.samples) {
				const gone = new Map(o.buckets), less = Object.entries(s).filter(([, n]) => typeof n === 'number').map(([k, n]) => [k, n - o[k]]);
				parts[name] = { ...Object.fromEntries(less), buckets: s.buckets.map(([le, n]) => [le, n - (gone.get(le) || 0)]).filter(b => b[1] > 0) };
			}
		}
		const exposed = c.exposed && was.exposed && Object.fromEntries(Object.entries(c.exposed).map(([k, n]) => [k, Math.max(n - was.exposed[k], 0)]));
		return { ...c, ...exposed && { exposed }, [of]: parts, tlb: Object.fromEntries(Object.entries(c.tlb).map(([k, n]) => [k, n - was.tlb[k]])) };
	}).filter(c => Object.keys(c[of]).length);
}
/* Miss cycles as in hist: latency times the ops that a sample represents. */
const missCycles = s => s.samples ? s.sum * s.estimated_ops / s.samples : 0;
const sums = () => ({ samples: 0, valid: 0, cycles: 0, exposed: 0, unexposed: 0, squares: 0, largest: 0, memory: 0, remote: 0, walks: 0, accesses: 0, source: new Float64Array(S),
	buckets: new Float64Array(L), of: D.sources.map(() => null) });
function addTo(sum, c) {
	D.sources.forEach((name, k) => {
		const s = c.sources[name];
		if (!s || source !== null && source !== k)
			return;
		const cycles = missCycles(s), of = sum.of[k] ||= { samples: 0, valid: 0, sum: 0, cycles: 0, buckets: new Float64Array(L) };
		sum.samples += s.samples;
		sum.valid += s.valid;
		sum.cycles += cycles;
		sum.source[k] += cycles;
		sum.memory += isMemory(name) ? cycles : 0;
		sum.remote += isRemote(name) ? cycles : 0;
		sum.accesses += name === 'none' ? 0 : s.estimated_ops;
		for (const key of ['samples', 'valid', 'sum'])
			of[key] += s[key];
		of.cycles += cycles;
		const middle = le => (le + lowEdge(BUCKET.get(le))) / 2, scale = cycles / s.buckets.reduce((all, [le, n]) => all + n * middle(le), 0);
		for (const [le, n] of s.buckets) {
			const weight = middle(le) * scale;
			sum.squares += n * weight * weight;
			sum.largest = Math.max(sum.largest, weight);
			of.buckets[BUCKET.get(le)] += n;
			if (source !== null || isMemory(name))
				sum.buckets[BUCKET.get(le)] += n;
		}
	});
	sum.walks += c.tlb.l2_miss_ops;
	if (source === null && c.exposed) { /* not by source */
		sum.exposed += c.exposed.cycles;
		sum.unexposed += c.exposed.unknown_samples;
	}
}
function groups(parts) {
	const all = new Map(), row = rowOf();
	for (const part of parts)
		for (const c of part) {
			const { key, own, name } = row(c);
			let g = all.get(key);
			if (!g)
				all.set(key, g = { c, key, keys: new Set(), name, sum: sums() });
			g.keys.add(own);
			addTo(g.sum, c);
		}
	for (const g of all.values())
		g.name += g.key === UNNAMED ? ` (${g.keys.size})` : '';
	return [...all.values()].filter(g => g.sum.samples);
}
const cyclesOf = c => Object.entries(c.sources).reduce((n, [name, s]) => n + (source === null || D.sources[source] === name ? missCycles(s) : 0), 0);
/* Miss cycles per second of each interval, oldest first; @keys: only these groups. */
function trend(keys) {
	return within(...span()).map(i => i.containers.reduce((n, c) => n + (!keys || keys.has(c.key ||= keyOf(c)) ? cyclesOf(c) : 0), 0) / (i.end - i.begin));
}

const className = () => source === null ? 'Memory' : D.sources[source];
/* As in the tables of hist: containers are ranked by exposed cycles where they are known of all. */
const isExposed = list => list.some(g => g.sum.exposed > 0) && !list.some(g => g.sum.unexposed > 0);
const columns = exposed => [
	{ key: 'name', title: 'Container', css: '' },
	{ key: 'samples', title: 'Samples', css: 'wide room', width: 58 },
	{ key: 'cycles', title: '', css: '', width: 76 },
	...exposed ? [{ key: 'exposed', title: '', css: 'mid', width: 76 }] : [],
	{ key: null, title: 'Share, by source', css: 'mix', width: 122 },
	{ key: null, title: 'Trend, ' + time(span()[1] - span()[0]), css: 'mid left', width: 80 },
	{ key: null, title: 'Change, %', css: 'mid', width: 58 },
	{ key: 'memory', title: 'Memory, %', css: 'mid', width: 54 },
	{ key: 'remote', title: 'Remote, %', css: 'mid', width: 54 },
	{ key: 'walks', title: 'TLB walk, %', css: 'wide room', width: 48 },
	{ key: 'p50', title: className() + ' p50', css: 'wide room', width: 54 },
	{ key: 'p99', title: className() + ' p99', css: '', width: 54 },
];
function drawTable(w) {
	const want = id('filter').value.toLowerCase(), list = groups(w.parts), exposed = isExposed(list), at = exposed ? 4 : 3, old = new Map(w.before ? groups(w.before.parts).map(g => [g.key, g]) : []), cols = columns(exposed), table = id('rows');
	const all = list.reduce((n, g) => n + g.sum.cycles, 0), max = Math.max(...list.map(g => g.sum.cycles), 1e-9), scale = scaleOf(max / w.seconds);
	const focus = document.activeElement?.dataset?.key;
	cols[2].title = `Miss cycles, ${scale.prefix}/s`;
	if (exposed)
		cols[3].title = `Exposed, ${scale.prefix}/s`;
	sorted = sortColumn === null || sortColumn === 'exposed' ? exposed ? 'exposed' : 'cycles' : sortColumn;
	table.querySelector('colgroup').replaceChildren(...cols.map(c => html('col', { width: c.width, class: c.css })));
	table.querySelector('thead tr').replaceChildren(...cols.map(c => html('th', { scope: 'col', class: c.css,
		'aria-sort': c.key === sorted ? sortDown ? 'descending' : 'ascending' : null },
	c.key ? html('button', { 'data-key': 'sort' + c.key, on: { click: () => sortBy(c.key) } }, html('span', {}, c.title)) : c.title)));
	const value = g => ({ name: g.name, samples: g.sum.samples, cycles: g.sum.cycles, exposed: g.sum.exposed, walks: g.sum.walks / g.sum.accesses,
		p50: latencyAt(g.sum.buckets, .5) ?? -1, p99: latencyAt(g.sum.buckets, .99) ?? -1 })[sorted] ?? g.sum[sorted] / g.sum.cycles;
	list.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : sorted === 'exposed' && a.sum.cycles !== b.sum.cycles ? a.sum.cycles - b.sum.cycles : a.name < b.name ? 1 : -1) * (sortDown ? -1 : 1));
	const shown = list.filter(g => !want || (g.name + ' ' + (g.c.cgroup || '')).toLowerCase().includes(want)).slice(0, ROWS), rest = list.filter(g => !shown.includes(g));
	if (!shown.some(g => g.key === chosen))
		chosen = shown.length ? shown[0].key : null;
	const add = (name, sum, keys, attributes) => {
		const cell = (c, ...v) => html('td', { class: cols[c].css + (v[0] === UNKNOWN ? ' unknown' : '') }, ...v), total = attributes.class === 'total';
		const change = changeOf(sum, merged([...old.values()].filter(g => !keys || keys.has(g.key))), w);
		return html('tr', { 'data-samples': sum.samples, 'data-cycles': sum.cycles, ...attributes }, html('td', {}, name), cell(1, count(sum.samples)), cell(2, weakMark(sum) + scale.text(sum.cycles / w.seconds)),
			exposed ? cell(3, scale.text(sum.exposed / w.seconds)) : '',
			cell(at, html('span', { class: 'share' }, total ? '' : shareBar(sum.source, max, 70), html('span', {}, percent(sum.cycles, all)))),
			cell(at + 1, sparkline(trend(keys), 72, 18) || ''), html('td', { class: cols[at + 2].css + change.css }, change.text), cell(at + 3, percent(sum.memory, sum.cycles)),
			cell(at + 4, percent(sum.remote, sum.cycles)), cell(at + 5, percent(sum.walks, sum.accesses)), cell(at + 6, cyclesText(latencyAt(sum.buckets, .5))), cell(at + 7, cyclesText(latencyAt(sum.buckets, .99))));
	};
	const merged = parts => {
		const sum = sums();
		for (const g of parts)
			for (const key of Object.keys(sum))
				if (key === 'largest')
					sum.largest = Math.max(sum.largest, g.sum.largest);
				else if (typeof sum[key] === 'number')
					sum[key] += g.sum[key];
				else if (key !== 'of')
					g.sum[key].forEach((v, i) => sum[key][i] += v);
		return sum;
	};
	const body = shown.map(g => add(nameOf(g.name, 'button', { 'aria-pressed': g.key === chosen, 'data-key': g.key }), g.sum, g.keys,
		{ class: 'pick', 'aria-current': g.key === chosen ? 'true' : null, on: { click: () => { chosen = g.key; draw(); } } }));
	if (rest.length)
		body.push(add(`other (${rest.length})`, merged(rest), new Set(rest.flatMap(g => [...g.keys])), {}));
	if (list.length)
		body.push(add('Total', merged(list), null, { class: 'total' }));
	table.querySelector('tbody').replaceChildren(...body);
	[...table.querySelectorAll('[data-key]')].find(e => e.dataset.key === focus)?.focus();
	id('trust').textContent = trustText(shown.map(g => g.sum));
	id('span').textContent = (list.length ? '' : 'No samples. ') + w.text + (list.some(g => g.key === UNNAMED) ? ' Unnamed are groups that were gone, or first seen, before their names were read.' : '') + ` Percentages are shares of the row’s miss cycles, for TLB walks of its accesses. Memory is DRAM, CXL and persistent memory of any node. p50 and p99 are latencies of ${className().toLowerCase()} ` +
		'in core cycles: upper edges of buckets, at most 1/8 too high. Each trend has its own scale.' + (w.before ? ` Change is against the ${time(w.before.seconds)} before; ~ is within the noise of sampling.` : '');
	return list.find(g => g.key === chosen);
}
function sortBy(key) {
	sortDown = sorted === key ? !sortDown : key !== 'name';
	sortColumn = key;
	draw();
}

/* Latency over the same time as the trends, log scale, coloured by miss cycles. */
function drawHeat(g) {
	const holder = id('heat'), width = Math.max(280, holder.clientWidth), left = 42, top = 6, height = 216, w = width - left - 8, [begin, end] = span();
	const list = within(begin, end).map(i => ({ ...i, of: i.containers.filter(c => g.keys.has(c.key ||= keyOf(c))) }));
	const heat = list.map(i => {
		const column = new Float64Array(L);
		for (const [name, s] of i.of.flatMap(c => Object.entries(c.sources))) {
			if (source !== null && name !== D.sources[source])
				continue;
			/* weight buckets by their edges, scaled so that they add up to the known total */
			const guess = s.buckets.reduce((n, [le, x]) => n + le * x, 0), each = guess ? missCycles(s) / guess / (i.end - i.begin) : 0;
			for (const [le, n] of s.buckets)
				column[BUCKET.get(le)] += le * n * each;
		}
		return column;
	});
	const used = D.edges.map((_, b) => b).filter(b => heat.some(column => column[b]));
	id('read').textContent = heat.length ? '' : intervals.length ? 'Nothing was sampled in this time.' : 'The chart begins with the second reading.';
	if (!used.length) {
		holder.replaceChildren();
		id('heat-ramp').replaceChildren();
		return;
	}
	const first = used[0], last = used[used.length - 1], log = v => Math.log2(Math.max(v, 1)), low = log(lowEdge(first)), high = Math.max(log(D.edges[last]), low + 1);
	const length = end - begin, x = t => left + w * Math.max(0, Math.min(1, (t - begin) / length));
	const y = v => top + Math.round((high - log(v)) / (high - low) * height), r = ramp(Math.max(...heat.map(column => Math.max(...column)))), paths = Array(9).fill('');
	heat.forEach((column, i) => {
		const x0 = Math.round(x(list[i].begin)), x1 = Math.max(x0 + 1, Math.round(x(list[i].end)));
		for (const b of used)
			if (column[b])
				paths[r.of(column[b])] += box(x0, y(D.edges[b]), x1 - x0, Math.max(1, (b === first ? top + height : y(lowEdge(b) - 1)) - y(D.edges[b])));
	});
	const s = picture(width, height + top + 22, { role: 'img', 'aria-label': `Latency of ${g.name} over ${range || past.on ? `${time(length)} up to ${wall(end)}` : `the last ${time(length)}`}` });
	s.append(svg('path', { class: 'plot', d: box(left, top, w, height) }), ...paths.map((p, i) => svg('path', { class: 'a' + i, d: p, 'shape-rendering': 'crispEdges' })));
	for (let v = 2 ** Math.ceil(low); v <= D.edges[last]; v *= 2)
		s.append(svg('path', { class: 'axis', d: `M${left - 4} ${y(v) + .5}h4` }), svg('text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, count(v)));
	const steps = w < 380 ? 2 : 4;
	for (let i = 0; i <= steps; i++)
		s.append(svg('text', { x: left + w * i / steps, y: top + height + 16, 'text-anchor': i === 0 ? 'start' : i === steps ? 'end' : 'middle' },
			past.on ? wall(begin + length * i / steps) : i === steps ? 'now' : MINUS + time(length * (1 - i / steps))));
	holder.replaceChildren(s);
	id('heat-ramp').replaceChildren(rampKey(r, v => figure(v) + '/s'));
}
function drawChosen(g, w) {
	id('chosen').hidden = !g;
	if (!g)
		return;
	id('chosen-h').replaceChildren(nameOf(g.name, 'span'));
	id('path').textContent = g.key !== UNNAMED && g.c.cgroup && g.c.cgroup !== workload(g.c) ? g.c.cgroup : '';
	drawHeat(g);
	const scale = scaleOf(Math.max(...g.sum.source, 0) / w.seconds), max = Math.max(...g.sum.source, 1e-9);
	id('sources-unit').textContent = `Miss cycles, ${scale.prefix}/s`;
	id('sources').querySelector('tbody').replaceChildren(...D.sources.map((name, k) => [name, g.sum.of[k], k]).filter(([, of]) => of).map(([name, of, k]) => {
		const one = new Float64Array(S), p = q => html('td', { class: q === .9 ? 'mid room' : '' }, cyclesText(latencyAt(of.buckets, q)));
		one[k] = of.cycles;
		return html('tr', {}, html('td', {}, html('i', { class: 'key src-' + name }), name), html('td', {}, scale.text(of.cycles / w.seconds)),
			html('td', {}, html('span', { class: 'share' }, shareBar(one, max, 34), html('span', {}, percent(of.cycles, g.sum.cycles)))),
			html('td', { class: 'mid' }, count(of.samples)), html('td', { class: 'mid room' }, of.valid ? count(of.sum / of.valid) : UNKNOWN), p(.5), p(.9), p(.99));
	}));
}
function drawLegend() {
	const d = frozen || latest, there = D.sources.map(name => d.containers.some(c => c.sources[name])), focus = document.activeElement?.dataset?.source;
	const keys = D.sources.map((name, k) => there[k] && html('button', { 'aria-pressed': source === k, title: 'Show only ' + name, 'data-source': k,
		on: { click: () => { source = source === k ? null : k; draw(); } } }, html('i', { class: 'key src-' + name }), name));
	keys.splice(NEAR_TO_FAR.indexOf('io'), 0, html('span', { class: 'note' }, 'far'));
	id('legend').replaceChildren(html('span', { class: 'note' }, 'near'), ...keys.filter(k => k));
	id('legend').querySelector(`[data-source="${focus}"]`)?.focus();
}

/* ---- instruction fetches ---- */
const OUTCOMES = [['Op cache', 'op-cache'], ['L1', 'l1', 'l1-l2'], ['L2', 'l2'], ['L3', 'l3'], ['Miss', 'l2-miss', 'l3-miss'], ['Aborted', 'aborted', 'killed']];
function drawFetches(d) {
	id('fetches').hidden = !d;
	if (!d)
		return;
	const w = windowOf(d, 'fetches'), all = new Map(), want = id('filter').value.toLowerCase(), zero = () => ({ samples: 0, n: 0, walks: 0, sum: 0, valid: 0, of: OUTCOMES.map(() => 0) });
	const add = (to, c) => {
		for (const [name, s] of Object.entries(c.fetches)) {
			const k = OUTCOMES.findIndex(([, ...names]) => names.includes(name));
			to.samples += s.samples;
			to.n += s.estimated_fetches;
			to.sum += s.sum;
			to.valid += s.valid;
			if (k >= 0)
				to.of[k] += s.estimated_fetches;
		}
		to.walks += c.tlb.l2_miss_ops;
		return to;
	};
	const row = rowOf();
	for (const c of w.parts.flat()) {
		const { key, name } = row(c);
		all.set(key, add(all.get(key) || { ...zero(), name, path: c.cgroup || '' }, c));
	}
	const total = w.parts.flat().reduce(add, { ...zero(), name: 'Total' }), scale = scaleOf(total.n / w.seconds);
	const some = [...all.values()].sort((a, b) => b.n - a.n).filter(g => g.samples);
	const list = some.filter(g => !want || (g.name + ' ' + g.path).toLowerCase().includes(want)).slice(0, ROWS), rest = some.filter(g => !list.includes(g));
	if (rest.length)
		list.push(rest.reduce((to, g) => {
			for (const key of ['samples', 'n', 'sum', 'valid', 'walks'])
				to[key] += g[key];
			g.of.forEach((v, k) => to.of[k] += v);
			return to;
		}, { ...zero(), name: `other (${rest.length})` }));
	const css = k => k === 0 || k === 5 ? 'wide' : k < 4 ? 'mid' : '';
	const cells = [['Container', '', g => g.name], ['Samples', 'wide', g => count(g.samples)], [`Fetches, ${scale.prefix}/s`, '', g => scale.text(g.n / w.seconds)],
		...OUTCOMES.map(([name], k) => [name + ', %', css(k), g => percent(g.of[k], g.n)]), ['ITLB walk, %', '', g => percent(g.walks, g.n, 2)],
		['Mean latency', 'mid', g => g.valid ? count(g.sum / g.valid) : UNKNOWN]];
	id('fetch-rows').querySelector('thead tr').replaceChildren(...cells.map(([name, c]) => html('th', { scope: 'col', class: c }, name)));
	id('fetch-rows').querySelector('tbody').replaceChildren(...[...list, total].map(g => html('tr', { 'data-fetches': g.samples, class: g === total ? 'total' : null },
		...cells.map(([, c, text], k) => html('td', { class: c }, k ? text(g) : nameOf(g.name, 'span'))))));
	id('fetch-note').textContent = `${w.text} One sample per ${period(d)} fetches. Percentages are shares of the row’s fetches; latencies are core cycles of completed fetches. ${ledgerText(ledgerOf(d, 'fetchLedger'))}`;
}

/* ---- the collector ---- */
const stopped = g => g && g.state === 'stopped';
function period(d) {
	const g = d.governor;
	if (!d.period || stopped(g))
		return stopped(g) ? 'stopped' : 'varies';
	return count(d.period) + (g && g.period_asked && g.period_asked !== d.period ? `, configured ${count(g.period_asked)}` : '');
}
function cost(d) {
	const g = d.governor;
	if (!g)
		return 'not measured';
	const assumed = [g.nmi_source === 'assumed' && 'interrupts', g.bpf_source === 'assumed' && 'BPF'].filter(p => p).join(' and ');
	return (g.overhead === null ? 'not known yet' : `${share(g.overhead)} now`) + (g.budget ? `, budget ${share(g.budget)}` : ', not controlled') + (assumed && `, ${assumed} assumed`);
}
function drawFacts(d) {
	const facts = [
		['Event', d.event], ['Period', period(d)], ['CPUs', d.cpus], ['Histogram metric', d.metric],
		['Options', [d.selection, d.live && `live: ${d.live}`].filter(p => p).join('; ') || 'none'], ['Counters since', new Date(d.start_s * 1000).toLocaleString()],
		['Collector', `process ${d.pid}, started ${count(d.starts)} time${d.starts === 1 ? '' : 's'}`], ['Groups', `${count(d.groups)} of ${count(d.groups_limit)}`],
		['Memory', `${bytes(d.map_bytes)} maps, ${bytes(d.rss_bytes)} collector`], ['PMU share', share(d.running_s / d.enabled_s)],
		['Throttled', count(d.throttled) + ' times'], ['Cost (CPU time)', cost(d)],
	];
	id('facts').replaceChildren(...facts.map(([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, String(value)))));
	const g = d.governor;
	id('short').textContent = [`${count(d.cpus)} CPU${d.cpus === 1 ? '' : 's'}`, d.period && `1 sample per ${count(d.period)}`, g && `cost ${g.overhead === null ? 'not known yet' : share(g.overhead)}` + (g.budget ? ` of ${share(g.budget)} allowed` : ', not controlled')]
		.filter(p => p).join(' · ');
}
const ledgerText = l => `${count(l.seen)} seen = ${[[l.aggregated, 'aggregated'], [l.forwarded, 'forwarded'], ...Object.entries(l.filtered).map(([why, n]) => [n, 'filtered: ' + why]),
	...Object.entries(l.lost).map(([why, n]) => [n, 'lost: ' + why])].filter(([n], k) => n || !k).map(([n, name]) => `${count(n)} ${name}`).join(' + ')}; unseen: ${l.unseen === null ? 'unknown' : count(l.unseen)}`;
function drawLedger(l) {
	const all = l.seen + (l.unseen || 0), rows = [];
	let sum = 0;
	const add = (name, n, css) => rows.push(html('tr', { class: css }, html('td', {}, name), html('td', {}, n === null ? 'unknown' : count(n)), html('td', {}, n === null ? UNKNOWN : percent(n, all, 2))));
	const outcome = (name, n, css) => {
		add(name, n, css);
		sum += n;
	};
	outcome('aggregated', l.aggregated);
	if (l.forwarded)
		outcome('forwarded', l.forwarded);
	for (const [why, n] of Object.entries(l.filtered))
		outcome('filtered: ' + why, n);
	for (const [why, n] of Object.entries(l.lost))
		outcome('lost: ' + why, n, 'bad');
	add('seen', l.seen, 'total');
	add('unseen: counted by the PMU, never reached the program', l.unseen, l.unseen > .01 * all ? 'bad' : '');
	if (sum !== l.seen)
		add('difference: a bug', l.seen - sum, 'bad');
	id('ledger').querySelector('tbody').replaceChildren(...rows);
	id('ledger-line').textContent = (range ? `${wall(range[0])} to ${wall(range[1])}: ` : '') + ledgerText(l);
}
const WHY = { budget: 'the cost exceeded the budget', throttled: 'the kernel throttled sampling', kernel_limit: 'near the kernel’s limit of samples',
	bpf_slow: 'the BPF program took too long', memory: 'the collector used too much memory', calm: 'returning to the configured period' };
/* Warnings that limit the meaning of all numbers. */
function warnings(d) {
	const list = [], g = d.alive ? d.governor : null, why = g && (WHY[g.reason] || g.reason);
	if (d.simulated)
		list.push('SIMULATED samples, not measurements.');
	if (!d.collector)
		list.push(d.why || '');
	else if (d.orphaned)
		list.push(`The collector was killed ${time(d.age_s)} ago. Sampling continues without a governor: start it again, or run ibscope ctl stop.`);
	else if (!d.alive)
		list.push(`The collector stopped updating ${time(d.age_s)} ago. ` + (shown().length ? `The history ends at ${wall(lastEnd())}.` : 'The values were counted before.'));
	if (stopped(g))
		list.push(`Sampling is stopped (${why}); next try in ${time(g.retry_s || 0)}. The values were counted before.`);
	else if (d.alive && stopped(d.fetch?.governor))
		list.push(`Sampling of fetches is stopped (${WHY[d.fetch.governor.reason] || d.fetch.governor.reason}); next try in ${time(d.fetch.governor.retry_s || 0)}.`);
	else if (g && (g.state === 'backed_off' || g.state === 'returning'))
		list.push(`Longer period than configured (${why}): ${count(d.period)} instead of ${count(g.period_asked)}. Shares are not affected.`);
	if (d.alive && d.waiting_for)
		list.push(`Waiting for ${d.waiting_for}: nothing matches yet.`);
	if (d.coarse_histograms)
		list.push('Too many containers to keep all latencies: only the exported edges are known, so there are no percentiles, and the chart of latencies is coarse.');
	if (d.collector && d.running_s < .999 * d.enabled_s)
		list.push(`Another profiler shares the PMU: sampling ran ${share(d.running_s / d.enabled_s)} of the time.`);
	return list;
}
function drawState(d) {
	const good = d.alive && !stopped(d.governor), band = warnings(d).filter(text => text);
	id('band').hidden = !band.length;
	id('band').replaceChildren(...band.map(text => html('p', {}, text)));
	id('state').className = good ? '' : 'bad';
	id('state').textContent = good ? 'collecting' : d.alive ? 'sampling is stopped' : d.orphaned ? 'orphaned: the collector was killed' : d.collector ? 'the collector is not running' :
		d.collector === null ? 'the counters cannot be read' : 'no collector';
	id('main').hidden = !d.collector;
	id('host').textContent = d.host || 'ibscope';
	document.title = d.host ? `${d.host}: ibscope` : 'ibscope';
	id('version').textContent = d.version ? `ibscope ${d.version}` : '';
	id('when').textContent = frozen ? `frozen at ${new Date(frozen.read_ms).toLocaleTimeString()}` : `read at ${new Date().toLocaleTimeString()}, every ${EVERY_MS / 1000} s`;
}
function draw() {
	const d = frozen || latest;
	if (!d)
		return;
	drawState(d);
	if (!d.collector)
		return;
	id('ops').hidden = isFetch(d);
	id('legend').hidden = isFetch(d);
	drawTime();
	if (!isFetch(d)) {
		const w = windowOf(d, 'containers');
		drawLegend();
		drawChosen(drawTable(w), w);
	}
	drawFetches(fetchesOf(d));
	drawLedger(ledgerOf(d, 'ledger'));
	id('window').disabled = range !== null || !shown().length;
	id('window').value = shown().length ? menu : '0';
	drawFacts(d);
	fitNames('table .name');
}
