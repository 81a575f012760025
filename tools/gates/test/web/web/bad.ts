const  narrow=1
export default narrow
