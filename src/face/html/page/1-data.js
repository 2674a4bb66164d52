/* ---- the recording ---- */
const D = JSON.parse(id('facts-data').textContent);
const NO_LATENCY = 255, NO_NODE = 255, NO_CPU = 65535, OP_MASK = 7, HITM = 8, WALK = 16, TLB_VALID = 32;

/* Read the rows, as columns; a row adds up samples that are equal in all shown properties. */
async function readColumns() {
	const text = atob(id('cells-data').textContent.trim()), packed = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++)
		packed[i] = text.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	const bytes = await new Response(stream).arrayBuffer(), n = D.rows, c = {};
	let at = 0;
	for (const [name, type] of [['latencies', Float64Array], ['operations', Float64Array], ['cycles', Float64Array], ['exposed', Float64Array],
		['samples', Uint32Array], ['stack', Uint32Array], ['max', Uint16Array], ['time', Uint16Array], ['group', Uint16Array],
		['cpu', Uint16Array], ['rank', Uint16Array], ['role', Uint16Array], ['region', Uint16Array], ['site', Uint16Array], ['source', Uint8Array],
		['flags', Uint8Array], ['bucket', Uint8Array], ['memory', Uint8Array]]) {
		if (D.period && (name === 'operations' || name === 'cycles')) {
			c[name] = new Float64Array(n); /* computed from the others below */
			continue;
		}
		if (name === 'exposed' && !D.exposed)
			continue;
		c[name] = new type(bytes, at, n);
		at += n * type.BYTES_PER_ELEMENT;
		at += -at & 7;
	}
	for (let i = 0; D.period && i < n; i++) {
		c.operations[i] = c.samples[i] * D.period;
		c.cycles[i] = c.bucket[i] === NO_LATENCY ? 0 : c.latencies[i] * D.period;
	}
	c.n = D.strata ? c.operations : c.samples; /* what a latency counts as: the ops that it represents, if samples differ in that */
	for (const [name, texts] of Object.entries(D.names)) { /* sorted by number, unnamed first */
		const order = texts.map((_, i) => i).sort((a, b) => a && b ? texts[a].localeCompare(texts[b], 'en', { numeric: true }) : a - b);
		const place = new Uint16Array(texts.length);
		order.forEach((old, i) => place[old] = i);
		D.names[name] = order.map(old => texts[old]);
		if (name === 'site')
			D.blocks = order.map(old => [D.block_bytes[2 * old], D.block_bytes[2 * old + 1]]);
		c[name] = c[name].map(old => place[old]);
	}
	c.node = c.cpu.map(cpu => cpu === NO_CPU ? D.nodes.length : D.cpus[cpu].at);
	D.memories = c.memory.reduce((max, m) => m === NO_NODE ? max : Math.max(max, m + 1), 0);
	c.memory = c.memory.map(m => m === NO_NODE ? D.memories : m); /* unknown comes last */
	c.host = c.cpu.map(cpu => cpu === NO_CPU ? D.hosts.length : D.cpus[cpu].host / PER_HOST);
	D.columns = c;
}
/* Hosts use the same numbers of sockets, nodes, L3s and CPUs: make them unique. */
const PER_HOST = 65536;
D.cpus.forEach((c, i) => {
	c.place = i; /* the number in rows */
	c.number = c.cpu;
	for (const level of ['socket', 'node', 'l3', 'cpu'])
		if (c[level] !== undefined)
			c[level] += c.host * PER_HOST;
	c.host *= PER_HOST;
});
/* NUMA nodes; for a CPU of unknown node, its host. `at` is the index in this list. */
D.nodes = [...new Set(D.cpus.map(c => c.node ?? c.host))].sort((a, b) => a - b);
D.cpus.forEach(c => c.at = D.nodes.indexOf(c.node ?? c.host));
let AXES = [];

const N = D.groups.length, S = D.sources.length, T = D.bins, L = D.edges.length;
const REMOTE = D.sources.map(isRemote);
const MEMORY = D.sources.map(isMemory);
const seconds = () => selected.time ? (selected.time[1] - selected.time[0] + 1) * D.bin_s : D.duration_s;
/* with tenths for a few seconds, so that the labels of the axis differ */
const at = bin => {
	const s = (D.start_s ?? 0) + bin * D.bin_s;
	return clock(s) + (D.duration_s < 6 ? '.' + Math.floor(s % 1 * 10) : '');
};

/*
 * The selection; null: all. A range includes both ends. `place` is [level, number] of the topology,
 * `code` a node of the call chains with all below it, or if negative, the function of frame -1 - code.
 * `rank` is a range of indices into D.names; `role`, `region` and `site` are single indices.
 */
const DIMENSIONS = ['group', 'source', 'time', 'bucket', 'place', 'code', 'rank', 'role', 'region', 'memory', 'site'];
const [GROUP, SOURCE, TIME, BUCKET, PLACE, CODE, RANK, ROLE, REGION, MEMORY_NODE, SITE] = DIMENSIONS.map((_, i) => 1 << i);
const selected = Object.fromEntries(DIMENSIONS.map(d => [d, null]));
let byCycles = true, sortColumn = D.exposed ? 'exposed' : 'cycles', sortDown = true;

/* Return a function: the filters that row i fails, as bits. */
function filters() {
	const c = D.columns, { group, source, time, bucket, place, code, rank, role, region, memory, site } = selected;
	const here = place && new Uint8Array(65536), inCode = code === null ? null : new Uint8Array(D.stacks.length / 2);
	(here ? D.cpus : []).forEach((cpu, i) => here[i] = cpu[place[0]] === place[1]);
	for (let s = 1; inCode && s < inCode.length; s++) /* callers come before what they call */
		inCode[s] = code < 0 ? D.stacks[2 * s + 1] === -1 - code : s === code || inCode[D.stacks[2 * s]];
	return i => (group !== null && c.group[i] !== group ? GROUP : 0) | (source !== null && c.source[i] !== source ? SOURCE : 0) |
		(time && (c.time[i] < time[0] || c.time[i] > time[1]) ? TIME : 0) |
		(bucket && (c.bucket[i] < bucket[0] || c.bucket[i] > bucket[1]) ? BUCKET : 0) |
		(rank && (c.rank[i] < rank[0] || c.rank[i] > rank[1]) ? RANK : 0) | (role !== null && c.role[i] !== role ? ROLE : 0) |
		(region !== null && c.region[i] !== region ? REGION : 0) | (memory !== null && c.memory[i] !== memory ? MEMORY_NODE : 0) |
		(site !== null && c.site[i] !== site ? SITE : 0) |
		(here && !here[c.cpu[i]] ? PLACE : 0) | (inCode && !inCode[c.stack[i]] ? CODE : 0);
}

/* ---- sums ---- */
function sums() {
	return { samples: 0, cycles: 0, exposed: 0, squares: 0, largest: 0, max: 0, valid: 0, classed: 0, remote: 0, memory: 0, hitm: 0, walks: 0, translated: 0,
		source: new Float64Array(S), buckets: new Float64Array(L), cost: new Float64Array(L * S),
		far: 0, farN: 0, near: 0, nearN: 0 };
}
/* Percentiles are meaningful for one class of source: the selected one, else memory. */
const inClass = k => selected.source !== null || MEMORY[k];
const className = () => selected.source !== null ? D.sources[selected.source] : 'memory';

function addRow(sum, c, i, k) {
	const samples = c.samples[i], n = c.n[i], cycles = c.cycles[i], bucket = c.bucket[i], flags = c.flags[i];
	sum.samples += samples;
	sum.cycles += cycles;
	sum.exposed += D.exposed ? c.exposed[i] : 0;
	sum.source[k] += cycles;
	if (flags & TLB_VALID) {
		sum.translated += n;
		if (flags & WALK)
			sum.walks += n;
	}
	if (bucket === NO_LATENCY)
		return;
	sum.valid += samples;
	sum.squares += cycles * cycles / samples; /* latencies of a bucket are nearly equal */
	sum.largest = Math.max(sum.largest, c.max[i] * c.operations[i] / samples);
	if (REMOTE[k])
		sum.remote += cycles;
	if (MEMORY[k])
		sum.memory += cycles;
	if (flags & HITM)
		sum.hitm += cycles;
	if (inClass(k)) {
		sum.buckets[bucket] += n;
		sum.classed += samples;
		sum.max = Math.max(sum.max, c.max[i]);
	}
	sum.cost[bucket * S + k] += cycles;
}

/*
 * One pass over the rows for all views. A view applies all filters except that of the dimension it
 * shows: the table keeps all groups, the time views the whole range.
 */
function scan() {
	const c = D.columns, failed = filters();
	const r = { groups: Array.from({ length: N }, sums), total: sums(), heat: new Float64Array(T * L),
		mix: new Float64Array(T * S), margin: new Float64Array(L * S), marginN: new Float64Array(L * S),
		cpu: new Map(), cpuRemote: new Map(), stack: new Map(), matrix: new Map(), site: new Map(),
		axis: AXES.map(({ dimension, column, n }) => ({ bit: 1 << DIMENSIONS.indexOf(dimension), column: c[column], n, cost: new Float64Array(n * S) })),
		trend: { cycles: new Float64Array(T), memory: new Float64Array(T), remote: new Float64Array(T),
			hitm: new Float64Array(T), walks: new Float64Array(T), translated: new Float64Array(T),
			buckets: new Float64Array(T * L), samples: new Float64Array(T) } };
	for (let i = 0; i < D.rows; i++) {
		const g = c.group[i], k = c.source[i], t = c.time[i], b = c.bucket[i], cycles = c.cycles[i], fails = failed(i);
		if (!(fails & ~GROUP))
			addRow(r.groups[g], c, i, k);
		if (!(fails & ~(SOURCE | TIME)))
			r.mix[t * S + k] += cycles;
		if (!(fails & ~(TIME | BUCKET)) && b !== NO_LATENCY)
			r.heat[t * L + b] += byCycles ? cycles : c.n[i];
		if (!(fails & ~TIME)) {
			const f = c.flags[i], trend = r.trend;
			trend.cycles[t] += cycles;
			if (MEMORY[k])
				trend.memory[t] += cycles;
			if (REMOTE[k])
				trend.remote[t] += cycles;
			if (f & HITM)
				trend.hitm[t] += cycles;
			if (f & TLB_VALID) {
				trend.translated[t] += c.n[i];
				if (f & WALK)
					trend.walks[t] += c.n[i];
			}
			if (b !== NO_LATENCY && inClass(k)) {
				trend.buckets[t * L + b] += c.n[i];
				trend.samples[t] += c.samples[i];
			}
		}
		if (!(fails & ~BUCKET) && b !== NO_LATENCY) {
			r.margin[b * S + k] += cycles;
			r.marginN[b * S + k] += c.n[i];
		}
		if (!fails)
			addRow(r.total, c, i, k);
		for (const { bit, column, n, cost } of r.axis)
			if (!(fails & ~bit) && column[i] < n)
				cost[column[i] * S + k] += cycles;
		if (!(fails & ~(PLACE | MEMORY_NODE)) && b !== NO_LATENCY) {
			const cell = c.node[i] * 256 + c.memory[i];
			let v = r.matrix.get(cell);
			if (!v)
				r.matrix.set(cell, v = { cycles: 0, samples: 0, n: 0, latencies: 0 });
			v.cycles += cycles;
			v.samples += c.samples[i];
			v.n += c.n[i];
			v.latencies += D.strata ? cycles : c.latencies[i];
		}
		if (!(fails & ~PLACE)) {
			r.cpu.set(c.cpu[i], (r.cpu.get(c.cpu[i]) || 0) + cycles);
			if (REMOTE[k])
				r.cpuRemote.set(c.cpu[i], (r.cpuRemote.get(c.cpu[i]) || 0) + cycles);
		}
		if (!(fails & ~SITE)) {
			let x = r.site.get(c.site[i]);
			if (!x)
				r.site.set(c.site[i], x = { samples: 0, exposed: 0, cost: new Float64Array(S) });
			x.samples += c.samples[i];
			x.exposed += D.exposed ? c.exposed[i] : 0;
			x.cost[k] += cycles;
		}
		if (fails & ~CODE)
			continue;
		let s = r.stack.get(c.stack[i]);
		if (!s)
			r.stack.set(c.stack[i], s = new Float64Array(S));
		s[k] += cycles;
	}
	return r;
}

/* Cycles above what the same group's accesses to local memory cost; null with fewer than ten local
 * samples, too few for a mean. */
function remotePrice(groups) {
	const c = D.columns, near = new Float64Array(N), nearN = new Float64Array(N), nearSamples = new Float64Array(N);
	const failed = filters();
	let price = 0, known = false;
	for (let i = 0; i < D.rows; i++)
		if (MEMORY[c.source[i]] && !REMOTE[c.source[i]] && c.bucket[i] !== NO_LATENCY) {
			near[c.group[i]] += c.cycles[i];
			nearN[c.group[i]] += c.n[i];
			nearSamples[c.group[i]] += c.samples[i];
		}
	for (let i = 0; i < D.rows; i++) {
		const k = c.source[i], g = c.group[i];
		if (!MEMORY[k] || !REMOTE[k] || c.bucket[i] === NO_LATENCY || nearSamples[g] < 10 || groups && !groups.includes(g) || failed(i))
			continue;
		price += c.cycles[i] - c.n[i] * near[g] / nearN[g];
		known = true;
	}
	return known ? Math.max(0, price) : null;
}
