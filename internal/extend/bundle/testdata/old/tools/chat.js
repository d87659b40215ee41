exports.handlers = {}
