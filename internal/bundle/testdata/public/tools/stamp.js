module.exports = async () => null
