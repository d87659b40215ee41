package record

// noFollow is nothing here: links are looked for before.
const noFollow = 0
