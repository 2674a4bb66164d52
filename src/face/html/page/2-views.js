/* ---- selection ---- */
let R = null, whole = null;
const toggle = (dimension, value) => choose({ [dimension]: `${selected[dimension]}` === `${value}` ? null : value });
function choose(change) {
	Object.assign(selected, change);
	draw();
}
const nothing = () => Object.fromEntries(DIMENSIONS.map(d => [d, null]));
const clear = () => choose(nothing());
const frameOf = code => D.frames[code < 0 ? -1 - code : D.stacks[2 * code + 1]];
const timeText = t => at(t[0]) + UNKNOWN + at(t[1] + 1);
const latencyText = b => `${count(lowEdge(b[0]))}${UNKNOWN}${count(D.edges[b[1]])}${THIN}cycles`;
/* Quote for pasting into a shell: one word, without terminal control characters. */
const controls = /\p{C}|[\u2028\u2029]/gu;
const bytes = c => [...new TextEncoder().encode(c)].map(b => '\\x' + b.toString(16).padStart(2, '0')).join('');
const quote = text => /^[\w@%+=:,./-]+$/.test(text) ? text : text.search(controls) < 0 ? `'${text.replace(/'/g, "'\\''")}'` :
	`$'${text.replace(/[\\']/g, '\\$&').replace(controls, bytes)}'`;

function drawLegend() {
	const keys = D.sources.map((name, k) => html('button', { 'aria-pressed': selected.source === k, title: 'Show only ' + name,
		'data-focus': 'source' + k, on: { click: () => toggle('source', k) } }, html('i', { class: 'key src-' + name }), name));
	const placeless = D.sources.findIndex(name => /^(io|peer|uncached|mab|unknown|none)$/.test(name));
	keys.splice(placeless < 0 ? keys.length : placeless, 0, html('span', { class: 'note' }, 'far'));
	id('legend').replaceChildren(html('span', { class: 'note' }, 'near'), ...keys);
	const chips = [];
	const chip = (dimension, text) => chips.push(html('button', { class: 'control', 'aria-label': 'Remove filter ' + text,
		on: { click: () => choose({ [dimension]: null }) } }, text + ' ×'));
	if (selected.group !== null)
		chip('group', D.groups[selected.group].name);
	if (selected.source !== null)
		chip('source', D.sources[selected.source]);
	if (selected.time)
		chip('time', timeText(selected.time));
	if (selected.bucket)
		chip('bucket', latencyText(selected.bucket));
	if (selected.place)
		chip('place', placeName(selected.place));
	for (const name of ['rank', 'role', 'region', 'memory', 'site'])
		if (selected[name] !== null)
			chip(name, namedText(name));
	if (selected.code !== null)
		chip('code', (selected.code < 0 ? '' : 'in ') + frameOf(selected.code));
	if (chips.length)
		chips.push(html('button', { class: 'link', on: { click: clear } }, 'Clear'), html('span', { class: 'hint note' }, 'Esc'));
	else
		chips.push(html('span', { class: 'hint' }, 'Click a source, a row or a function, or drag in a chart: every view follows.'));
	id('chips').replaceChildren(...chips);
	id('command').textContent = commandLine();
}
/* "rank 3–5", "region solve" */
function namedText(dimension) {
	const v = selected[dimension], name = i => dimension === 'memory' ? i < D.memories ? `node ${i}` : 'unknown' : D.names[dimension][i] || 'unknown';
	const title = { rank: 'rank', role: 'thread', region: 'region', memory: 'memory of', site: 'allocated by' }[dimension];
	return `${title} ` + (dimension !== 'rank' ? name(v) : v[0] === v[1] ? name(v[0]) : name(v[0]) + UNKNOWN + name(v[1]));
}
/* A command line for the same selection, as far as there are options for it. */
function commandLine() {
	const words = [D.command];
	if (selected.group !== null)
		words.push(D.groups[selected.group].option ? `${D.groups[selected.group].option} ${quote(D.groups[selected.group].name)}` : '');
	if (selected.source !== null)
		words.push('--src ' + D.sources[selected.source]);
	if (selected.bucket)
		words.push(`--min-lat ${Math.max(1, lowEdge(selected.bucket[0]))} --max-lat ${D.edges[selected.bucket[1]]}`);
	if (selected.place && selected.place[0] !== 'host')
		words.push('-C ' + cpuList(D.cpus.filter(c => c[selected.place[0]] === selected.place[1]).map(c => c.number)));
	words.push(selected.code !== null ? '--by symbol' : selected.site !== null ? '--by allocation' : '--by container,src', D.file && quote(D.file));
	const only = [selected.group !== null && !D.groups[selected.group].option && 'this group', selected.time && timeText(selected.time),
		selected.place && D.hosts.length > 1 && 'host ' + D.hosts[Math.floor(selected.place[1] / PER_HOST)],
		...['rank', 'role', 'region', 'memory', 'site'].map(name => selected[name] !== null && namedText(name)),
		selected.code !== null && frameOf(selected.code)].filter(w => w);
	if (only.length)
		words.push(`  # ${only.join(', ').replace(controls, bytes)}: only here`);
	return words.filter(w => w).join(' ');
}

/* "0-3,8" */
function cpuList(cpus) {
	const out = [];
	for (let a = 0, b; a < cpus.length; a = b) {
		for (b = a + 1; b < cpus.length && cpus[b] === cpus[b - 1] + 1;)
			b++;
		out.push(b - a > 1 ? `${cpus[a]}-${cpus[b - 1]}` : cpus[a]);
	}
	return out.join();
}

/* ---- key figures ---- */
const percentileOf = (sum, p) => percentile(sum.buckets, p, sum.max, sum.classed);
function drawFigures() {
	const t = R.total, w = whole.total, s = seconds(), narrowed = Object.values(selected).some(v => v !== null);
	const ratio = (a, b) => Array.from(a, (v, i) => b[i] ? v / b[i] : 0);
	const all = (part, of) => narrowed ? `all: ${percent(part, of)}${THIN}%` : null;
	const trend = R.trend, price = remotePrice(), p99 = [];
	for (let i = 0; i < T; i++)
		p99.push(percentile(trend.buckets.subarray(i * L, i * L + L), .99, Infinity, trend.samples[i]) || 0);
	const rows = [
		['Miss cycles', figure(t.cycles / s), '/s', narrowed ? `of ${figure(w.cycles / D.duration_s)}/s in all` :
			`${count(t.valid)} samples with a latency`, trend.cycles],
		['From memory', percent(t.memory, t.cycles), '%', all(w.memory, w.cycles) || 'of miss cycles', ratio(trend.memory, trend.cycles)],
		['From another node', percent(t.remote, t.cycles), '%', all(w.remote, w.cycles) ||
			(price === null ? 'price: unknown' : `price ${figure(price / s)}/s above local`), ratio(trend.remote, trend.cycles)],
		['Modified lines (HITM)', D.hitm ? percent(t.hitm, t.cycles) : UNKNOWN, D.hitm ? '%' : '',
			D.hitm ? all(w.hitm, w.cycles) || 'of miss cycles' : 'unknown', ratio(trend.hitm, trend.cycles)],
		[`${className()[0].toUpperCase() + className().slice(1)} latency, p50 / p99`, cyclesText(percentileOf(t, .5)) + THIN + '/' + THIN + cyclesText(percentileOf(t, .99)),
			'', `cycles, ${count(t.classed)} samples`, p99],
		['Page walks', percent(t.walks, t.translated), t.translated ? '%' : '', all(w.walks, w.translated) || 'of accesses', ratio(trend.walks, trend.translated)],
	];
	id('figures').replaceChildren(...rows.map(([name, value, unit, sub, values]) => html('div', {}, html('dt', {}, name),
		html('dd', { class: 'main' }, html('span', {}, html('span', { class: 'value' }, value), html('span', { class: 'unit' }, unit)),
			sparkline(coarse(values), 72, 20)), html('dd', { class: 'sub', title: sub }, sub))));
}
/* At most 60 points. */
function coarse(values) {
	const step = Math.max(1, Math.ceil(values.length / 60)), out = [];
	for (let i = 0; i + step <= values.length; i += step) {
		let sum = 0;
		for (let k = 0; k < step; k++)
			sum += values[i + k];
		out.push(sum / step);
	}
	return out;
}

/* ---- groups ---- */
const TABLE_ROWS = 20;
const columns = () => [
	{ key: 'name', title: D.group_title, css: '' },
	{ key: 'samples', title: 'Samples', css: 'wide room', width: 58 },
	{ key: 'cycles', title: '', css: '', width: 76 },
	...D.exposed ? [{ key: 'exposed', title: '', css: 'mid', width: 76 }] : [],
	{ key: 'share', title: 'Share, by source', css: 'mix', width: 122 },
	{ key: 'memory', title: 'Memory, %', css: 'mid', width: 56 },
	{ key: 'remote', title: 'Remote, %', css: 'mid', width: 54 },
	{ key: 'hitm', title: 'HITM, %', css: 'wide', width: 48 },
	{ key: 'p50', title: className() + ' p50', css: 'mid', width: 54 },
	{ key: 'p99', title: className() + ' p99', css: '', width: 54 },
	{ key: null, title: 'Miss cycles by latency', css: 'wide room left', width: 104 },
];
/* The first and the last bucket in use. */
function usedBuckets() {
	let first = L - 1, last = 0;
	for (let b = 0; b < L; b++)
		for (let k = 0; k < S; k++)
			if (whole.total.cost[b * S + k]) {
				first = Math.min(first, b);
				last = Math.max(last, b);
			}
	return first > last ? [0, L - 1] : [first, last];
}
function mergeSums(list) {
	const m = sums();
	for (const s of list)
		for (const key of Object.keys(m))
			if (key === 'max' || key === 'largest')
				m[key] = Math.max(m[key], s[key]);
			else if (typeof m[key] === 'number')
				m[key] += s[key];
			else
				s[key].forEach((v, i) => m[key][i] += v);
	return m;
}
function drawTable() {
	const cols = columns(), table = id('rows'), [first, last] = usedBuckets(), s = seconds();
	const rows = R.groups.map((sum, g) => ({ sum, g, whole: whole.groups[g], p50: percentileOf(sum, .5), p99: percentileOf(sum, .99) }));
	const scale = scaleOf(Math.max(...rows.map(r => r.sum.cycles)) / s), max = Math.max(...whole.groups.map(x => x.cycles), 1e-9);
	cols[2].title = `Miss cycles, ${scale.prefix}/s`;
	if (D.exposed)
		cols[3].title = `Exposed, ${scale.prefix}/s`;
	const after = cols.findIndex(c => c.key === 'share');
	table.querySelector('colgroup').replaceChildren(...cols.map(c => html('col', { width: c.width, class: c.css })));
	table.querySelector('thead tr').replaceChildren(...cols.map(c => html('th', { scope: 'col', class: c.css,
		'aria-sort': c.key === sortColumn ? sortDown ? 'descending' : 'ascending' : null },
		c.key ? html('button', { on: { click: () => sortBy(c.key) } }, html('span', {}, c.title)) : c.title)));
	const value = r => sortColumn === 'name' ? D.groups[r.g].name : sortColumn === 'p50' || sortColumn === 'p99' ? r[sortColumn] ?? -1 :
		sortColumn === 'share' ? r.sum.cycles : ['samples', 'cycles', 'exposed'].includes(sortColumn) ? r.sum[sortColumn] :
			r.sum.cycles ? r.sum[sortColumn] / r.sum.cycles : -1;
	rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : sortColumn === 'exposed' && a.sum.cycles !== b.sum.cycles ? a.sum.cycles - b.sum.cycles : a.g - b.g) * (sortDown ? -1 : 1));
	/* keep the selected row in the table */
	const shown = rows.filter((r, i) => i < TABLE_ROWS || r.g === selected.group), rest = rows.filter(r => !shown.includes(r));
	const body = shown.map(r => row(r, nameOf(D.groups[r.g].name, 'button', { 'aria-pressed': selected.group === r.g, 'data-focus': 'group' + r.g }),
		{ class: 'pick', 'aria-current': selected.group === r.g ? 'true' : null, on: { click: () => toggle('group', r.g) } }));
	const sum = (list, name, attributes) => row({ sum: mergeSums(list.map(r => r.sum)), whole: mergeSums(list.map(r => r.whole)) }, name, attributes);
	if (rest.length)
		body.push(sum(rest, `other (${rest.length})`, {}));
	body.push(sum(rows, 'Total', { class: 'total' }));
	table.querySelector('tbody').replaceChildren(...body);
	id('trust').textContent = trustText(shown.map(r => r.sum));

	function row(r, name, attributes) {
		const x = r.sum, p50 = percentileOf(x, .5), p99 = percentileOf(x, .99), total = attributes.class === 'total';
		const cell = (c, ...v) => html('td', { class: cols[c].css + (v[0] === UNKNOWN ? ' unknown' : '') }, ...v);
		return html('tr', { 'data-samples': x.samples, 'data-cycles': x.cycles, 'data-p50': p50, 'data-p99': p99, ...D.exposed ? { 'data-exposed': x.exposed } : {}, ...attributes }, html('td', {}, name), cell(1, count(x.samples)), cell(2, weakMark(x) + scale.text(x.cycles / s)),
			D.exposed ? cell(3, scale.text(x.exposed / s)) : '',
			cell(after, html('span', { class: 'share' }, total ? '' : shareBar(x.source, max, 70, DIMENSIONS.some(d => d !== 'group' && selected[d] !== null) ? r.whole.cycles : 0),
				html('span', {}, percent(x.cycles, R.groups.reduce((a, b) => a + b.cycles, 0))))),
			cell(after + 1, percent(x.memory, x.cycles)), cell(after + 2, percent(x.remote, x.cycles)),
			cell(after + 3, D.hitm ? percent(x.hitm, x.cycles) : UNKNOWN), cell(after + 4, cyclesText(p50)), cell(after + 5, cyclesText(p99)),
			cell(after + 6, stackedHistogram((b, k) => x.cost[b * S + k], first, last, 92, 18)));
	}
}
function sortBy(key) {
	sortDown = sortColumn === key ? !sortDown : key !== 'name';
	sortColumn = key;
	draw();
}

/* ---- code ---- */
function drawCode() {
	id('code').parentElement.hidden = D.stacks.length <= 2;
	if (D.stacks.length <= 2)
		return;
	const nodes = new Map(), root = { id: 0, name: 'all', cost: new Float64Array(S), kids: [], up: null }, own = new Map();
	const node = n => {
		let x = n ? nodes.get(n) : root;
		if (!x) {
			const up = node(D.stacks[2 * n]);
			nodes.set(n, x = { id: n, name: D.frames[D.stacks[2 * n + 1]], cost: new Float64Array(S), kids: [], up });
			up.kids.push(x);
		}
		return x;
	};
	const total = a => a.reduce((x, y) => x + y, 0), s = seconds();
	for (const [leaf, cost] of R.stack) {
		const frame = leaf ? D.stacks[2 * leaf + 1] : -1;
		for (let n = node(leaf); n; n = n.up)
			cost.forEach((v, k) => n.cost[k] += v);
		if (!own.has(frame))
			own.set(frame, new Float64Array(S));
		cost.forEach((v, k) => own.get(frame)[k] += v);
	}
	drawFlame(root, selected.code > 0 && nodes.get(selected.code) || root);
	const all = total(root.cost);
	const list = [...own].map(([frame, cost]) => ({ frame, name: D.frames[frame] || '[unresolved]', cost, sum: total(cost) })).sort((a, b) => b.sum - a.sum);
	/* rows that would read "< 0.1" say nothing beside the first ones */
	const top = list.filter((f, i) => i < 3 || (i < 12 && f.sum >= all / 1000) || selected.code === -1 - f.frame), rest = list.filter(f => !top.includes(f));
	const max = Math.max(...list.map(f => f.sum), 1e-9), scale = scaleOf(Math.max(max, all / 10) / s);
	if (rest.length) {
		const cost = new Float64Array(S);
		rest.forEach(r => r.cost.forEach((v, k) => cost[k] += v));
		top.push({ frame: -1, name: `other (${rest.length})`, cost, sum: total(cost) });
	}
	id('functions-unit').textContent = `Miss cycles, ${scale.prefix}/s`;
	id('functions').querySelector('tbody').replaceChildren(...top.map(f => {
		const code = -1 - f.frame, name = html('span', { class: 'mono' }, f.name);
		return html('tr', f.frame < 0 ? {} : { class: 'pick', 'aria-current': selected.code === code ? 'true' : null, on: { click: () => toggle('code', code) } },
			html('td', {}, f.frame < 0 ? html('span', { class: 'name' }, name) :
				html('button', { class: 'name', title: f.name, 'aria-pressed': selected.code === code, 'data-focus': 'code' + f.frame }, name)),
			html('td', {}, scale.text(f.sum / s)),
			html('td', {}, html('span', { class: 'share' }, shareBar(f.cost, Math.max(max, f.sum), 92), html('span', {}, percent(f.sum, all)))));
	}));
}
function drawFlame(root, top) {
	const total = n => n.cost.reduce((a, b) => a + b, 0), width = Math.max(280, id('flame').clientWidth), height = 20, letter = 6.62;
	const path = [];
	for (let n = top.up; n; n = n.up)
		path.unshift(n);
	const zoomTo = n => choose({ code: n.id || null });
	id('unzoom').hidden = top === root;
	id('code-note').textContent = D.chains ? 'Width is miss cycles; the line under a frame is its source mix. Click a frame to zoom in.' :
		'No call chains in this recording (record -g): only functions.';
	const frames = path.map((n, level) => ({ n, x: 0, w: width, level }));
	let depth = 0;
	const place = (n, x, w, level) => {
		if (w < 1.5)
			return;
		depth = Math.max(depth, level);
		frames.push({ n, x, w, level });
		let a = x;
		for (const kid of n.kids.sort((p, q) => total(q) - total(p))) {
			const part = w * total(kid) / total(n);
			place(kid, a, part, level + 1);
			a += part;
		}
	};
	if (total(top) > 0)
		place(top, 0, width, path.length);
	const h = (depth + 1) * height, all = total(root);
	const s = picture(width, h, { role: 'application', tabindex: 0, 'aria-label': 'Flame graph of miss cycles, roots at the bottom. Arrow keys move, Enter zooms, Escape clears.' });
	let current = null;
	const read = f => id('flame-read').replaceChildren(html('b', { class: 'mono' }, f.n.name),
		` ${figure(total(f.n) / seconds())}/s, ${percent(total(f.n), all)}${THIN}% of what is selected`);
	for (const f of frames) {
		const y = h - (f.level + 1) * height, w = Math.max(.8, f.w - 1);
		f.g = svg('g', { class: 'frame', on: { click: () => zoomTo(f.n), pointerenter: () => read(f) } },
			svg('rect', { x: px(f.x), y, width: px(w), height: height - 1 }));
		let x = f.x;
		if (w >= 6)
			f.n.cost.forEach((v, k) => {
				const part = w * v / total(f.n);
				if (part > .3)
					f.g.append(svg('path', { class: 'src-' + D.sources[k], d: box(px(x), y + height - 5, px(part), 4) }));
				x += part;
			});
		const room = Math.floor((w - 7) / letter);
		if (room >= 3)
			f.g.append(svg('text', { x: px(f.x + 4), y: y + 11 }, middleCut(f.n.name, room)));
		s.append(f.g);
	}
	s.addEventListener('keydown', e => {
		const nearest = test => frames.filter(test).sort((a, b) => Math.abs(a.x - current.x) - Math.abs(b.x - current.x))[0];
		if (e.key === 'Enter' && current) {
			zoomTo(current.n);
			return;
		}
		const moves = { ArrowUp: f => f.level === current.level + 1 && f.x >= current.x - .1 && f.x < current.x + current.w,
			ArrowDown: f => f.level === current.level - 1 && f.x <= current.x + .1 && f.x + f.w > current.x,
			ArrowLeft: f => f.level === current.level && f.x < current.x, ArrowRight: f => f.level === current.level && f.x > current.x };
		if (!moves[e.key])
			return;
		e.preventDefault();
		const to = current ? nearest(moves[e.key]) : frames[frames.length - 1];
		if (to) {
			current?.g.classList.remove('on');
			current = to;
			to.g.classList.add('on');
			read(to);
		}
	});
	id('flame').replaceChildren(s);
	id('flame-read').textContent = '';
}

/* ---- allocations ---- */
const SITE_ROWS = 12, SITE_LINE = 20; /* letters of a line where it has no column of its own: its number is the end */
/* "solve solve.c:12" as function and line; what is not of an allocation has neither */
function siteParts(name) {
	const parts = /^(.+) (\S+:\d+)$/.exec(name);
	return parts ? [parts[1], parts[2]] : [name, UNKNOWN];
}
function blocksText([least, most]) {
	return !most ? UNKNOWN : least === most ? count(most) : count(least) + UNKNOWN + count(most);
}
function drawSites() {
	id('sites').hidden = D.names.site.length < 2;
	if (D.names.site.length < 2)
		return;
	const total = a => a.reduce((x, y) => x + y, 0), s = seconds(), by = D.exposed ? 'exposed' : 'cycles';
	const list = [...R.site].map(([site, x]) => ({ site, name: D.names.site[site] || '[no address]', ...x, cycles: total(x.cost) })).sort((a, b) => b[by] - a[by] || b.cycles - a.cycles);
	const all = list.reduce((sum, x) => sum + x.cycles, 0), top = list.filter((x, i) => i < SITE_ROWS || x.site === selected.site), rest = list.filter(x => !top.includes(x));
	const max = Math.max(...list.map(x => x.cycles), 1e-9), scale = scaleOf(max / s);
	if (rest.length) {
		const other = { site: null, name: `other (${rest.length})`, samples: 0, exposed: 0, cycles: 0, cost: new Float64Array(S) };
		for (const x of rest) {
			for (const key of ['samples', 'exposed', 'cycles'])
				other[key] += x[key];
			x.cost.forEach((v, k) => other.cost[k] += v);
		}
		top.push(other);
	}
	id('sites-h').textContent = `Allocations by ${D.exposed ? 'exposed' : 'miss'} cycles`;
	id('sites-exposed').hidden = id('sites-exposed-col').hidden = !D.exposed;
	id('sites-exposed').textContent = `Exposed, ${scale.prefix}/s`;
	id('sites-unit').textContent = `Miss cycles, ${scale.prefix}/s`;
	id('site-rows').querySelector('tbody').replaceChildren(...top.map(x => siteRow(x, scale, s, Math.max(max, x.cycles), all)));
}
function siteRow(x, scale, s, max, all) {
	const [name, line] = siteParts(x.name), chosen = selected.site === x.site, text = html('span', { class: 'mono' }, name);
	return html('tr', { 'data-samples': x.samples, 'data-cycles': x.cycles, ...x.site === null ? {} : { class: 'pick', 'aria-current': chosen ? 'true' : null, on: { click: () => toggle('site', x.site) } } },
		html('td', {}, x.site === null ? html('span', { class: 'name' }, text) : html('button', { class: line === UNKNOWN ? 'name' : 'name two', title: name, 'aria-pressed': chosen, 'data-focus': 'site' + x.site }, text),
			line === UNKNOWN ? null : html('span', { class: 'mono small' }, middleCut(line, SITE_LINE))),
		html('td', { class: 'left mid' }, line === UNKNOWN ? line : html('span', { class: 'name', title: line }, html('span', { class: 'mono' }, line))),
		html('td', { class: 'mid' }, x.site === null ? UNKNOWN : blocksText(D.blocks[x.site])), html('td', { class: 'mid' }, count(x.samples)),
		D.exposed ? html('td', { class: 'mid' }, scale.text(x.exposed / s)) : '', html('td', {}, scale.text(x.cycles / s)),
		html('td', {}, html('span', { class: 'share' }, shareBar(x.cost, max, 92), html('span', {}, percent(x.cycles, all)))));
}

/* ---- lines, ledger, record ---- */
/* The first of several names, and how many others there are. */
function firstName(name, others, css = '', before = '') {
	const text = before + name + (others ? ` +${others}` : '');
	return html('span', { class: 'name' + css, title: text }, html('span', { class: 'mono' }, text));
}
const VERDICTS = { false: 'false sharing', true: 'true sharing', both: 'true and false sharing' };
/* "false?" is one that is not proved: no sample found the line modified in another cache. */
const verdictText = v => v === null ? UNKNOWN : (VERDICTS[v.replace('?', '')] || v.replace('?', '')) + (v.endsWith('?') ? '?' : '');
function lineRow(l, scale) {
	const two = l.writer !== null && l.reader !== null && l.writer !== l.reader;
	const who = two ? [firstName(l.writer, l.other_writers), firstName(l.reader, l.other_readers, ' dim', '→ ')] :
		l.writer !== null ? [firstName(l.writer, l.other_writers)] : l.reader !== null ? [firstName(l.reader, l.other_readers)] : [UNKNOWN];
	return html('tr', {}, html('td', { class: 'mono' }, (D.hosts.length > 1 ? D.hosts[l.host] + ' ' : '') + l.line),
		html('td', { class: 'left' }, l.verdict && VERDICTS[l.verdict] ? html('b', {}, verdictText(l.verdict)) : verdictText(l.verdict), html('span', { class: 'slots mono', title: 'slots of 8 bytes: W written and shared, w written, r read, . unused' }, l.slots)),
		html('td', { class: 'left' }, ...who), html('td', { class: 'left' }, l.variable === null ? UNKNOWN : firstName(l.variable, l.other_variables)),
		html('td', { class: 'left mid' }, l.groups.length === 1 ? nameOf(D.groups[l.groups[0]].name, 'span') : `${l.groups.length} containers`),
		html('td', { class: 'wide' }, count(l.samples)), html('td', { class: 'wide' }, count(l.loads)), html('td', { class: 'wide' }, count(l.stores)),
		html('td', { class: 'mid' }, l.hitm === null ? UNKNOWN : percent(l.hitm, 1)), html('td', { class: 'mid' }, count(l.threads)), html('td', { 'data-unit': l.cycles === null ? null : `${THIN}${scale.prefix}/s` }, l.cycles === null ? UNKNOWN : scale.text(l.cycles / D.duration_s)));
}
function drawLines() {
	const list = D.lines.filter(l => selected.group === null || l.groups.includes(selected.group)).sort((a, b) => b.cycles - a.cycles), scale = scaleOf(Math.max(...list.map(l => l.cycles / D.duration_s), 0));
	id('lines').hidden = !D.lines.length && !D.lines_private;
	id('line-rows').hidden = !list.length;
	id('lines-note').textContent = (list.length ? '64 bytes each, by physical address where it is known, whole recording; filtered only by container. Verdicts are those of ibscope c2c.' :
		D.lines.length ? 'None is shared in this container.' : 'No line is shared.') +
		(D.lines_private ? ` ${count(D.lines_private)} line${D.lines_private > 1 ? 's' : ''} of one thread or CPU ${D.lines_private > 1 ? 'are' : 'is'} not listed.` : '') +
		(D.lines_lack ? ` ${count(D.lines_lack)} samples of cold lines are missing.` : '');
	id('lines-unit').textContent = `Miss cycles, ${scale.prefix}/s`;
	id('line-rows').querySelector('tbody').replaceChildren(...list.slice(0, 12).map(l => lineRow(l, scale)));
}
function drawFacts() {
	id('host').textContent = D.host || (D.hosts.length > 1 ? `${D.hosts.length} hosts: ${D.hosts.slice(0, 3).join(', ')}${D.hosts.length > 3 ? ', …' : ''}` : 'unknown host');
	id('when').textContent = D.when;
	id('same').textContent = D.command + ' --json';
	id('facts').replaceChildren(...D.facts.map(f => html('span', {}, f)));
	id('containers-h').textContent = `${D.group_title}s by ${D.exposed ? 'exposed' : 'miss'} cycles`;
	const ledger = id('ledger'), seen = D.ledger && D.ledger.seen;
	const row = of => (name, n, css) => html('tr', { class: css }, html('td', {}, name), html('td', {}, n === null ? UNKNOWN : count(n)), html('td', {}, n === null || !of ? UNKNOWN : percent(n, of, 3)));
	ledger.hidden = !D.ledger;
	id('attribution').hidden = !D.attribution.length;
	id('attribution-rows').querySelector('tbody').replaceChildren(...D.attribution.flatMap(({ what, known, rows }) => {
		const all = rows.reduce((sum, [, n]) => sum + n, 0), line = row(all);
		return [...rows.filter(([, n], i) => n || i < known).map(([name, n]) => line(`${what}: ${name}`, n, '')), line(`${what}: all`, all, 'total')];
	}));
	if (D.ledger) {
		const sum = D.ledger.rows.map(([name, n]) => `${count(n)} ${name}`).join(' + ');
		id('ledger-line').replaceChildren('ledger: ', html('b', {}, count(seen)), ` seen = ${sum || 0}; ${D.ledger.unseen === null ? 'unseen: not known' : count(D.ledger.unseen) + ' unseen'}`);
		id('ledger-note').textContent = [...D.ledger.strata.map(([name, n]) => `${count(n)} of the ${name}`), 'balances to the unit'].join('; ');
		const line = row(seen);
		id('ledger-rows').querySelector('tbody').replaceChildren(...D.ledger.rows.map(([name, n]) => line(name, n, '')), line('seen', seen, 'total'), line('unseen', D.ledger.unseen, ''));
	} else {
		id('ledger-line').textContent = 'ledger: not in this recording';
	}
	id('record').replaceChildren(...D.record.map(([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, value))));
}
