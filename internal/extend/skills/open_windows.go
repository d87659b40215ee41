package skills

const nonblock = 0 // no pipe has a path in a folder
