/* ---- findings: see html_findings.h ---- */
/* Before the share, after it, and what may be the reason. */
const CAUSES = {
	hitm: ['spends', 'of its miss cycles on lines that another cache had modified', 'Threads write data that others read.'],
	remote: ['waits for another node in', 'of its miss cycles', 'Threads run on other nodes than their memory, or share data across nodes.'],
	far: ['waits for CXL or persistent memory in', 'of its miss cycles', 'Pages lie on the slow tier.'],
	walk: ['spends', 'of its miss cycles on accesses that missed both TLBs', 'The data spans more pages than the TLB holds; huge pages may help.'],
	slow: ['finds', `of its accesses to local DRAM slower than ${count(D.findings?.slow ?? 0)} cycles`, 'The memory channels are busier than elsewhere.'],
	memory: ['waits for memory in', 'of its miss cycles', 'The data does not fit the caches.'],
};
function finding({ group, frame, cause, share, rest, excess, command }, i) {
	const [before, after, reason] = CAUSES[cause], one = group !== undefined, name = one ? D.groups[group].name : D.frames[frame];
	const others = one ? D.group_title.toLowerCase() + 's' : 'functions';
	const words = 'ibscope ' + command.map(quote).join(' ');
	return html('li', {}, html('span', { class: 'unknown' }, `${i + 1}.`),
		html('div', {}, html('p', {}, html('b', { class: one ? '' : 'mono' }, name), ` ${before} ${percent(share, 1)}${THIN}% ${after}; all other ${others} together: ${percent(rest, 1)}${THIN}%. At their share it would have ${figure(excess / D.duration_s)} miss cycles/s less. ${reason}`),
			html('p', {}, 'Next: ', html('code', {}, words))),
		html('button', { class: 'link no-print', 'aria-label': 'Select ' + name, on: { click: () => choose({ ...nothing(), ...(one ? { group } : { code: -1 - frame }) }) } }, 'Select'));
}
/* Why there are none. */
function noFindings() {
	if (!D.findings)
		return `Too few samples with a latency to compare ${D.group_title.toLowerCase()}s.`;
	const { containers, functions } = D.findings, several = [containers > 1 && 'container', functions > 1 && 'function'].filter(w => w);
	return 'Nothing stands out: ' + (several.length ? `no ${several.join(' or ')} differs from the rest beyond noise.` : 'there is one container, and nothing to compare it with.');
}
/* Falsely shared lines of all threads together, if they have a tenth of all miss cycles; not those of a handful of samples. */
function sharedLines(before) {
	const lines = D.lines.filter(l => (l.verdict === 'false' || l.verdict === 'both') && l.samples >= FEW).sort((a, b) => b.cycles - a.cycles), one = lines.length === 1;
	const cycles = lines.reduce((sum, l) => sum + l.cycles, 0);
	if (!(cycles > whole.total.cycles / 10))
		return [];
	return [html('li', {}, html('span', { class: 'unknown' }, `${before + 1}.`), html('div', {}, html('p', {}, html('b', {}, `${count(lines.length)} cache line${one ? '' : 's'}`),
		` ${one ? 'is' : 'are'} shared falsely, with ${percent(cycles, whole.total.cycles)}${THIN}% of all miss cycles`,
		...(lines[0].variable === null ? [] : [one ? ': ' : ', the dearest of ', html('b', { class: 'mono' }, lines[0].variable)]), `. Threads write parts of ${one ? 'it' : 'them'} that others do not use. See `, html('a', { href: '#lines' }, 'cache lines'), '.'),
		D.parts === 1 ? html('p', {}, 'Next: ', html('code', {}, `ibscope c2c ${quote(D.file)}`)) : null))];
}
function drawFindings() {
	const list = D.findings ? D.findings.list : [], lines = sharedLines(list.length), none = noFindings();
	if (!list.length)
		lines.push(html('li', { class: 'none' }, html('p', {}, lines.length ? none.replace('Nothing stands out: n', 'N') : none)));
	id('findings').replaceChildren(...list.map(finding), ...lines);
}
