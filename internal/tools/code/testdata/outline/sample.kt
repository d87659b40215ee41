package x

@Serializable
data class Point(val x: Int, val y: Int)

sealed interface Shape {
    fun area(): Double
}

class Store<T>(private val limit: Int) : Base() {
    val size: Int get() = 1

    companion object {
        const val MAX = 5
    }

    override suspend fun load(key: String): T? {
        fun local() {}
        return null
    }
}

object Single
fun String.shout() = this + "!}"
typealias Names = List<String>
